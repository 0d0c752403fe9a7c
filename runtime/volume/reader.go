package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// Limits for reading a volume: the bytes of its files, plus entryCost for each name, and the depth of its directories.
// A checkpoint has at most 64 MiB (package state), so larger content was not written by podctl.
const (
	contentMax = 64 << 20
	entryCost  = 256
	depthMax   = 500
)

// errForeign reports content that podctl did not write.
var errForeign = errors.New("it was not written by podctl")

// dataDir returns the directory that ..data points to, or an empty name if there is no ..data. It is valid only if it
// is a link to a directory that a writer created. Otherwise a container created it.
func (w *writer) dataDir() (name string, valid bool, err error) {
	info, err := w.dir.Lstat(dataLink)
	if err != nil {
		return "", true, safefs.IgnoreMissing(err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return "", false, nil
	}
	name, err = w.dir.Readlink(dataLink)
	if err != nil || !isContentName(name) {
		return "", false, ignoreChange(err)
	}
	info, err = w.dir.Lstat(name)
	if err != nil || !info.IsDir() {
		return "", false, ignoreChange(err)
	}
	return name, true, nil
}

// isContentName reports whether a writer can have created a content directory with this name.
func isContentName(name string) bool {
	return safefs.CheckName(name) == nil && strings.HasPrefix(name, hidden) && name != dataLink && name != dataLinkNew
}

// ignoreChange drops errors caused by a file that changed its type or never had the expected one.
func ignoreChange(err error) error {
	if safefs.Missing(err) || errors.Is(err, unix.EINVAL) || errors.Is(err, errForeign) {
		return nil
	}
	return err
}

// current returns the content that ..data points to, or nil if there is none. It is valid only if a writer created all
// of it.
func (w *writer) current() (files map[string]File, valid bool, err error) {
	name, valid, err := w.dataDir()
	if err != nil || !valid || name == "" {
		return nil, valid, err
	}
	r := &reader{files: map[string]File{}, budget: contentMax, group: w.group}
	dir, err := w.dir.Open(name)
	if err == nil {
		err = errors.Join(r.read(dir, "", 0), dir.Close())
	}
	if err != nil {
		return nil, false, ignoreChange(err)
	}
	return r.files, true, nil
}

// reader reads the files below a directory.
type reader struct {
	files  map[string]File
	budget int64
	group  *int64
}

func (r *reader) read(dir *safefs.Dir, at string, depth int) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() != contentDirMode || !isOwn(info) {
		return errForeign
	}
	entries, err := dir.Entries()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if r.budget -= entryCost; r.budget < 0 || depth > depthMax {
			return errForeign
		}
		if err := r.readEntry(dir, entry.Name(), path.Join(at, entry.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readEntry(dir *safefs.Dir, name, at string, depth int) error {
	sub, err := dir.Open(name)
	if err == nil {
		return errors.Join(r.read(sub, at, depth+1), sub.Close())
	}
	if !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	r.files[at], err = r.readFile(dir, name)
	return err
}

// isOwn reports whether a file has the owner of a writer's files.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// readFile reads a file. A file that is not regular was not written by podctl. readFile sets its group to -2, which no
// wanted file has, so that the content differs.
func (r *reader) readFile(dir *safefs.Dir, name string) (File, error) {
	f, info, err := dir.OpenRegular(name)
	if errors.Is(err, safefs.ErrNotRegular) || errors.Is(err, safefs.ErrLink) {
		return File{GID: -2}, nil
	}
	if err != nil {
		return File{}, err
	}
	defer f.Close() //nolint:errcheck // It was read.
	data, err := r.readData(f, info.Size())
	file := File{Data: data, Mode: info.Mode().Perm(), GID: -1}
	if !isOwn(info) {
		file.UID = ownerOf(info)
	}
	if r.group != nil {
		file.GID = groupOf(info)
	}
	return file, err
}

func (r *reader) readData(f *os.File, size int64) ([]byte, error) {
	if size > r.budget {
		return nil, errForeign
	}
	data, err := io.ReadAll(io.LimitReader(f, r.budget+1))
	if r.budget -= int64(len(data)); r.budget < 0 {
		return nil, errForeign
	}
	return data, err
}
