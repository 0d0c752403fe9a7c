package input

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File is the text of one file, or the reason why it cannot be read.
type File struct {
	// Name is the absolute path.
	Name string
	Text []byte
	Err  error
	// Info describes the file before it was read. It is nil if that is unknown.
	Info fs.FileInfo
}

// Known returns the text of a file that need not be read again. It may be called at any time, even after Each has
// returned.
type Known func(name string, info fs.FileInfo) (text []byte, ok bool)

// Tree repeatedly reads a directory of manifests, or one manifest. A file that cannot be read does not hide others.
type Tree struct {
	Reader Reader
	Path   string
	// silent holds the operations that missed their deadline and still run, by name. No second one with the same name
	// starts.
	silent map[string]<-chan struct{}
	// late is set once an operation has missed its deadline in the current Each.
	late bool
}

const (
	// maxSilent limits the operations that run after their deadline, because each takes a thread of the process. For
	// files that are not links the limit is twice as high.
	maxSilent = 64
	// hurried is the deadline after another operation of the same Each has missed its own.
	hurried = 200 * time.Millisecond
)

// Each reads the files. A directory may have none. If the path does not exist, its name ends like a manifest's and its
// directory exists, Each returns no files.
func (t *Tree) Each(ctx context.Context, known Known) ([]File, error) {
	t.late = false
	var names []string
	var failed error
	if err := t.Do(ctx, "the directory", func() { names, failed = t.Reader.named(ctx, t.Path) }); err != nil {
		return nil, readingAll(t.Path, err)
	}
	if failed != nil {
		return nil, readingAll(t.Path, failed)
	}
	var files []File
	size := 0
	for _, name := range names {
		f := t.one(ctx, name, known)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if isGone(f) {
			continue
		}
		if size += len(f.Text); size > maxTogether {
			return nil, readingAll(t.Path, errTogether)
		}
		files = append(files, f)
	}
	return files, nil
}

// one reads one file.
func (t *Tree) one(ctx context.Context, name string, known Known) File {
	many := len(t.silent) >= maxSilent
	if len(t.silent) >= 2*maxSilent && t.silent[name] == nil {
		return File{Name: name, Err: reading(name, errManySilent)}
	}
	var f File
	if err := t.Do(ctx, name, func() {
		if info, err := os.Lstat(name); many && err == nil && info.Mode()&fs.ModeSymlink != 0 {
			f = File{Name: name, Err: reading(name, errManySilent)}
			return
		}
		f = readOne(name, t.Reader.maxBytes(), known)
	}); err != nil {
		return File{Name: name, Err: reading(name, err)}
	}
	return f
}

// errManySilent reports that a file is not read. Files of the directory itself are read longer than links, whose
// targets may be on another file system.
var errManySilent = errors.New("it is not read, because too many other files do not answer")

// Do calls do, and returns an error if it does not return in time. While do still runs, no operation with the same name
// starts.
func (t *Tree) Do(ctx context.Context, name string, do func()) error {
	if t.isSilent(name) {
		return errSilent
	}
	limit := t.Reader.Timeout
	if t.late {
		limit = hurried
	}
	done := make(chan struct{})
	_, err := within(ctx, limit, func() (struct{}, error) {
		defer close(done)
		do()
		return struct{}{}, nil
	})
	if err != nil {
		if t.late = true; t.silent == nil {
			t.silent = map[string]<-chan struct{}{}
		}
		t.silent[name] = done
	}
	return err
}

// isSilent reports whether an operation with this name still runs.
func (t *Tree) isSilent(name string) bool {
	select {
	case <-t.silent[name]:
		delete(t.silent, name)
		return false
	default:
		return t.silent[name] != nil
	}
}

// named returns the files that a path leads to, readable or not.
func (r Reader) named(ctx context.Context, path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return r.manifestsIn(ctx, path)
	case errors.Is(err, fs.ErrNotExist) && IsManifestFile(path):
		_, err = os.Stat(filepath.Dir(path))
		return []string{path}, err
	}
	return []string{path}, err
}

// readOne reads a file unless its text is known.
func readOne(name string, limit int64, known Known) File {
	f := File{Name: name}
	if f.Info, f.Err = os.Stat(name); f.Err != nil {
		f.Err = reading(name, f.Err)
		return f
	}
	if text, ok := known(name, f.Info); ok {
		f.Text = text
		return f
	}
	text, err := readRegular(name, limit)
	f.Text, f.Err = text, reading(name, err)
	return f
}

// isGone reports whether a file was removed before it was read. A dangling link is not gone.
func isGone(f File) bool {
	if !errors.Is(f.Err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Lstat(f.Name)
	return errors.Is(err, fs.ErrNotExist)
}
