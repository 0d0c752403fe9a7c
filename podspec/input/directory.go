package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits for reading a directory. There is a lower limit for objects anyway.
const (
	// maxFiles limits the number of manifests.
	maxFiles = 2_000
	// maxEntries limits the number of names in all directories.
	maxEntries = 100_000
	// maxTogether limits the total bytes of all manifests.
	maxTogether = 64 << 20
	// entriesAtOnce is the number of names read at a time.
	entriesAtOnce = 1_000
)

var (
	errFiles    = fmt.Errorf("there are more than %d manifests; move some into another directory", maxFiles)
	errEntries  = fmt.Errorf("there are more than %d files; move those that are not manifests", maxEntries)
	errTogether = fmt.Errorf(
		"the manifests have more than %d bytes together; move some into another directory", maxTogether)
)

// manifestsIn returns the files of a directory that can be manifests.
func (r Reader) manifestsIn(ctx context.Context, dir string) ([]string, error) {
	l := lister{ctx: ctx, recursive: r.Recursive}
	// With the separator a link to a directory is followed.
	err := l.list(dir + string(filepath.Separator))
	return l.files, err
}

// lister collects the names of manifests.
type lister struct {
	ctx       context.Context //nolint:containedctx // one listing is one call
	recursive bool
	files     []string
	entries   int
}

// list adds the manifests of one directory in order of their names.
func (l *lister) list(dir string) error {
	all, err := l.read(dir)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, entry := range all {
		path := filepath.Join(dir, entry.Name())
		if entry.IsDir() {
			err = l.list(path)
		} else {
			l.files = append(l.files, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the relevant names of a directory. It stops above the limit.
func (l *lister) read(dir string) (matter []fs.DirEntry, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // it was only read
	files := len(l.files)
	for {
		entries, err := d.ReadDir(entriesAtOnce)
		l.entries += len(entries)
		for _, entry := range entries {
			if l.matters(entry) {
				matter = append(matter, entry)
			}
			if l.matters(entry) && !entry.IsDir() {
				files++
			}
		}
		switch {
		case l.ctx.Err() != nil:
			return nil, context.Cause(l.ctx)
		case files > maxFiles:
			return nil, errFiles
		case l.entries > maxEntries:
			return nil, errEntries
		case errors.Is(err, io.EOF):
			return matter, nil
		case err != nil:
			return nil, err
		}
	}
}

// matters reports whether an entry is a manifest, or a directory to read recursively.
func (l *lister) matters(entry fs.DirEntry) bool {
	switch {
	case strings.HasPrefix(entry.Name(), "."):
		return false
	case entry.IsDir():
		return l.recursive
	}
	return IsManifestFile(entry.Name())
}
