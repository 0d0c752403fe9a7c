//go:build kustomize

package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/podctl/podctl/podspec/input"
)

// What is read of a kustomization is bounded; a base that is used twice counts twice.
const (
	maxReads = 2_000
	maxBytes = 64 << 20
)

// files is the disk as the library may see it: files are read within bounds and without links, and nothing is written. A
// file that was read once is not read again, so that what was checked is what is built.
type files struct {
	// FileSystem is nil: the library gets to nothing that is not below.
	filesys.FileSystem
	root string
	// texts are the files that were read, by their paths, and checked the kustomizations among them.
	texts   map[string][]byte
	checked map[string]bool
	reads   int
	bytes   int64
	// failure is why a file that there is could not be read.
	failure error
}

func newFiles(root string) *files {
	return &files{root: root, texts: map[string][]byte{}, checked: map[string]bool{}}
}

// CleanedAbs splits a path into its directory and its file. A path with a symbolic link in it is refused: files of one
// directory would be those of another.
func (f *files) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	if !filepath.IsAbs(path) {
		return "", "", fmt.Errorf("%s is no path of this machine", path)
	}
	path = filepath.Clean(path)
	info, err := os.Lstat(path)
	if err != nil {
		return "", "", err
	}
	if there, err := filepath.EvalSymlinks(path); err != nil || there != path {
		f.fail(linkError(path))
		return "", "", linkError(path)
	}
	if info.IsDir() {
		return filesys.ConfirmedDir(path), "", nil
	}
	return filesys.ConfirmedDir(filepath.Dir(path)), filepath.Base(path), nil
}

func linkError(path string) error {
	return fmt.Errorf("%s is, or is behind, a symbolic link: kustomizations are read without links", path)
}

func (f *files) fail(err error) {
	if f.failure == nil {
		f.failure = err
	}
}

// ReadFile reads a file. A kustomization must have been checked before.
func (f *files) ReadFile(path string) ([]byte, error) {
	text, err := f.read(path)
	switch {
	case err != nil:
		if !errors.Is(err, fs.ErrNotExist) {
			f.fail(err)
		}
		return nil, err
	case slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path)) && !f.checked[path]:
		err = fmt.Errorf("%s was not checked", path)
		f.fail(err)
		return nil, err
	}
	return bytes.Clone(text), nil
}

// read reads a file within the bounds.
func (f *files) read(path string) ([]byte, error) {
	if f.reads++; f.reads > maxReads {
		return nil, fmt.Errorf("more than %d files would be read", maxReads)
	}
	text, known := f.texts[path]
	if !known {
		var err error
		if text, err = readFile(path); err != nil {
			return nil, err
		}
		if err = checkExtent(text); err != nil {
			return nil, fmt.Errorf("%s %w", path, err)
		}
		f.texts[path] = text
	}
	if f.bytes += int64(len(text)); f.bytes > maxBytes {
		return nil, fmt.Errorf("its files have more than %d bytes together", maxBytes)
	}
	return text, nil
}

// readFile reads a regular file, on whose path is no link.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ELOOP) {
		return nil, linkError(path)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close() //nolint:errcheck // a file that was only read
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, err
	}
	text, err := input.ReadAtMost(file, input.DefaultMaxBytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return text, nil
}

// Exists reports whether there is something at a path.
func (f *files) Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// IsDir reports whether a path is a directory, and no link to one.
func (f *files) IsDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// The library calls none of these for a build of local files.
var errReadOnly = errors.New("a kustomization is only read")

// Create refuses.
func (f *files) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir refuses.
func (f *files) Mkdir(string) error { return errReadOnly }

// MkdirAll refuses.
func (f *files) MkdirAll(string) error { return errReadOnly }

// RemoveAll refuses.
func (f *files) RemoveAll(string) error { return errReadOnly }

// WriteFile refuses.
func (f *files) WriteFile(string, []byte) error { return errReadOnly }

// Open refuses: ReadFile has the bounds.
func (f *files) Open(string) (filesys.File, error) { return nil, errReadOnly }

// ReadDir refuses.
func (f *files) ReadDir(string) ([]string, error) { return nil, errReadOnly }

// Glob refuses.
func (f *files) Glob(string) ([]string, error) { return nil, errReadOnly }

// Walk refuses.
func (f *files) Walk(string, filepath.WalkFunc) error { return errReadOnly }

// tell is an error of the library in one line. Its messages repeat what they are about, so they are left out where that
// may be a Secret.
func (f *files) tell(err error) error {
	for _, text := range f.texts {
		if bytes.Contains(bytes.ToLower(text), []byte("secret")) {
			return errors.New("kustomize refuses it; what it says is left out, because there are Secrets in the files: see kustomize build")
		}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(input.OneLine(text))
}
