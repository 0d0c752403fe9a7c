package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// Known gives the text of a file that need not be read again.
type Known func(name string, info fs.FileInfo) (text []byte, ok bool)

// Each reads the manifests of a directory, or one file, each by itself: one that cannot be read
// hides no other. A directory may hold none. A path that is not there was a file when it ends as
// manifests do: then there is no text, as long as its directory is there.
func (r Reader) Each(ctx context.Context, path string, known Known) ([]File, error) {
	names, err := r.named(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var files []File
	for _, name := range names {
		f := r.one(ctx, name, known)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if isGone(f) {
			continue
		}
		files = append(files, f)
	}
	return files, nil
}

// named are the files that a path leads to, whether they can be read or not.
func (r Reader) named(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return r.manifestsIn(path)
	case errors.Is(err, fs.ErrNotExist) && IsManifestFile(path):
		_, err = os.Stat(filepath.Dir(path))
		return []string{path}, err
	}
	return []string{path}, err
}

// one reads a file. What is no regular file may never end, or not even begin.
func (r Reader) one(ctx context.Context, name string, known Known) File {
	f := File{Name: name}
	if f.Info, f.Err = os.Stat(name); f.Err != nil {
		f.Err = fmt.Errorf("reading manifest: %w", f.Err)
		return f
	}
	if !f.Info.Mode().IsRegular() {
		f.Err = fmt.Errorf("reading manifest %s: it is no regular file", name)
		return f
	}
	if text, ok := known(name, f.Info); ok {
		f.Text = text
		return f
	}
	read, err := r.readFile(ctx, name)
	f.Text, f.Err = read[0].Text, err
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
