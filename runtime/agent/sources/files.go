package sources

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/podctl/podctl/podspec/input"
)

// Files is the source of a directory of manifests, or of one manifest.
type Files struct {
	textSource

	path     string
	settings Settings
	// tree reads the files, with a timeout because a file system may not answer.
	tree *input.Tree
	// kept holds the files of the last read.
	kept keptFiles
}

// NewFiles returns the source of a path. A path that does not exist is a manifest if it has the extension of one, and
// else a directory.
func NewFiles(path string, s Settings) (*Files, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s = s.completed()
	reader := s.Loader.Reader
	reader.Timeout = fileTimeout
	tree := &input.Tree{Reader: reader, Path: path}
	return &Files{textSource: textSource(path), path: path, settings: s, tree: tree}, nil
}

// Run reads the files when they change. Each interval, it also reads the files that changed without an event.
func (f *Files) Run(ctx context.Context, reread <-chan chan struct{}, notify func(Update)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWatch(f.watched(ctx))
	l := &poller{texts: f.settings.texts(f.path), interval: f.settings.Interval, readsTwice: true}
	l.events = debounce(ctx, w.events, f.settings.Settle)
	l.read = func(ctx context.Context) Reading {
		warning := f.renew(ctx, w)
		// A file that is deleted later is in the next reading.
		removed := w.takeRemoved()
		r := f.read(ctx, time.Now())
		if f.settings.EndRemoved {
			r.Removed = removed
		}
		r.Warning = warning
		return r
	}
	l.run(ctx, reread, notify)
}

// renew watches the current file or directory at the path.
func (f *Files) renew(ctx context.Context, w *watch) error {
	var failed error
	if err := f.tree.Do(ctx, "watching", func() { failed = w.renew(ctx) }); err != nil {
		return noticedLate(f.path, err)
	}
	return failed
}

// watched returns the directory to watch, and the only relevant name in it. The name is empty if all are relevant.
func (f *Files) watched(ctx context.Context) (dir, only string) {
	isFile := false
	silent := f.tree.Do(ctx, "the path", func() {
		info, err := os.Stat(f.path)
		isFile = err == nil && !info.IsDir() || err != nil && input.IsManifestFile(f.path)
	})
	if silent == nil && isFile {
		return filepath.Dir(f.path), f.path
	}
	return f.path, ""
}

// read reads the files that have changed since the last read.
func (f *Files) read(ctx context.Context, now time.Time) Reading {
	files, err := f.tree.Each(ctx, f.kept.unchanged)
	if err != nil {
		return Reading{Err: err}
	}
	kept, r := keptFiles{}, Reading{}
	for _, one := range files {
		r.Texts = append(r.Texts, Text{Name: one.Name, Text: one.Text, Err: one.Err})
		if one.Err == nil {
			kept[one.Name] = keptFile{text: one.Text, id: identityOf(one.Info), read: now}
		}
	}
	f.kept = kept
	return r
}

// keptFiles are the files of one read. They are immutable.
type keptFiles map[string]keptFile

// keptFile is the content of a file.
type keptFile struct {
	text []byte
	id   identity
	read time.Time
}

// identity changes whenever a file changes, provided that the resolution of its times is fine enough.
type identity struct {
	device, inode  uint64
	size           int64
	written, inner syscall.Timespec
}

// identityOf returns the identity of a file. It is zero if the system does not provide it.
func identityOf(info fs.FileInfo) identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{device: stat.Dev, inode: stat.Ino, size: stat.Size, written: stat.Mtim, inner: stat.Ctim}
}

// timeResolution is an upper limit of the difference between a file's times and its last change.
const timeResolution = time.Second

// unchanged returns the content of an unchanged file. A file that was changed just before it was read may have been
// changed again within the same clock tick, so it is read again.
func (all keptFiles) unchanged(name string, info fs.FileInfo) ([]byte, bool) {
	k, ok := all[name]
	is := identityOf(info)
	if !ok || is == (identity{}) || is != k.id || k.read.Sub(time.Unix(is.inner.Unix())) <= timeResolution {
		return nil, false
	}
	return k.text, true
}
