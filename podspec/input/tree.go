package input

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File is the text of one file, or why it cannot be read.
type File struct {
	// Name is the absolute path.
	Name string
	Text []byte
	Err  error
	// Info is how the file was before it was read; nil when that cannot be found out.
	Info fs.FileInfo
}

// Known gives the text of a file that need not be read again. It may be called at any time, also after Each has returned.
type Known func(name string, info fs.FileInfo) (text []byte, ok bool)

// Tree reads a directory of manifests, or one manifest, again and again. A file that cannot be read hides no other one.
type Tree struct {
	Reader Reader
	Path   string
	// silent are what was begun, has missed its deadline and goes on, by name: nothing of that name is begun beside it.
	silent map[string]<-chan struct{}
	// late is set once something has missed its deadline in the present look.
	late bool
}

const (
	// maxSilent bounds the reads that go on after their deadline: each takes a thread of the process. Twice as many are allowed
	// for files that are no links.
	maxSilent = 64
	// hurried is the deadline in a look in which something has missed its own.
	hurried = 200 * time.Millisecond
)

// Each reads the files. A directory may hold none. A path that is not there was a file when it ends as
// manifests do: then there is no text, as long as its directory is there.
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

// errManySilent says that a file is not read. Files of the directory itself are read longer than links: what these lead to may lie
// elsewhere.
var errManySilent = errors.New("it is not read, because too many others do not answer")

// Do does something, and returns an error if that does not end in time. Before it has ended nothing of the same name is begun.
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

// isSilent reports whether something of this name still goes on.
func (t *Tree) isSilent(name string) bool {
	select {
	case <-t.silent[name]:
		delete(t.silent, name)
		return false
	default:
		return t.silent[name] != nil
	}
}

// named are the files that a path leads to, whether they can be read or not.
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

// readOne reads a file, unless its text is known.
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

// isGone reports whether a file went away before it was read. A link that leads nowhere is there.
func isGone(f File) bool {
	if !errors.Is(f.Err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Lstat(f.Name)
	return errors.Is(err, fs.ErrNotExist)
}
