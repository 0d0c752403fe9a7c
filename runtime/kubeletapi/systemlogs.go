package kubeletapi

import (
	"errors"
	"io/fs"
	"net/http"
	"os"

	"golang.org/x/sys/unix"
)

// systemLogDir is the directory of /logs/.
const systemLogDir = "/var/log"

// systemLogRoutes adds the paths of the machine's logs (kubelet: InstallSystemLogHandler). If they are not enabled, the
// response is that of a kubelet.
func (s *Server) systemLogRoutes(mux *http.ServeMux, stream func(pattern string, h handler)) {
	if !s.SystemLogs {
		mux.HandleFunc("/logs/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "logs endpoint is disabled.", http.StatusMethodNotAllowed)
		})
		return
	}
	stream("GET /logs/", serveSystemLogs(systemLogDir))
}

// serveSystemLogs serves the files below a directory.
func serveSystemLogs(dir string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close() //nolint:errcheck // it was only read
		http.StripPrefix("/logs/", http.FileServer(systemLogs{root})).ServeHTTP(w, r)
		return nil
	}
}

// systemLogs has the regular files and directories below a directory. Links that leave the directory, and absolute
// ones, cannot be opened.
type systemLogs struct{ root *os.Root }

// Open opens a file. A pipe would wait for its writer, and a device could act on it.
func (s systemLogs) Open(name string) (http.File, error) {
	for len(name) > 0 && name[0] == '/' {
		name = name[1:]
	}
	if name == "" {
		name = "."
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return systemLog{f}, nil
}

// listedMax limits the entries of a directory that are listed.
const listedMax = 10_000

// systemLog is an open file or directory.
type systemLog struct{ *os.File }

// ReadDir returns at most listedMax entries of a directory.
func (l systemLog) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = listedMax
	}
	entries, err := l.File.ReadDir(n)
	if len(entries) > 0 {
		err = nil
	}
	return entries, err
}
