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

// Files is a directory of manifests, or one manifest.
type Files struct {
	textSource

	path     string
	settings Settings
	// tree reads the files and what belongs to them; a file system may not answer.
	tree *input.Tree
	// kept are the files as they were read last.
	kept keptFiles
}

// NewFiles makes the source of a path. A path that is not there is one of a manifest if it ends as
// manifests do, and one of a directory if not.
func NewFiles(path string, s Settings) (*Files, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s = s.completed()
	reader := s.Loader.Reader
	reader.Timeout = fileTimeout
	return &Files{textSource: textSource(path), path: path, settings: s, tree: &input.Tree{Reader: reader, Path: path}}, nil
}

// Run reads the files when they change, and all that changed each interval.
func (f *Files) Run(ctx context.Context, reread <-chan chan struct{}, tell func(Update)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWatch(f.watched(ctx))
	l := &looker{texts: NewTexts(f.path, f.settings.Loader), interval: f.settings.Interval, looksTwice: true}
	l.events = settled(ctx, w.events, f.settings.Settle)
	l.look = func(ctx context.Context) Reading {
		warning := f.renew(ctx, w)
		r := f.read(ctx, time.Now())
		r.Warning = warning
		return r
	}
	l.run(ctx, reread, tell)
}

// renew watches what is at the path now.
func (f *Files) renew(ctx context.Context, w *watch) error {
	var failed error
	if err := f.tree.Do(ctx, "watching", func() { failed = w.renew(ctx) }); err != nil {
		return late(f.path, err)
	}
	return failed
}

// watched are the directory in which names change, and the one name that matters in it; empty for
// all.
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

// read reads the files that are not as they were.
func (f *Files) read(ctx context.Context, now time.Time) Reading {
	files, err := f.tree.Each(ctx, f.kept.known)
	if err != nil {
		return Reading{Err: err}
	}
	kept, r := keptFiles{}, Reading{}
	for _, one := range files {
		r.Texts = append(r.Texts, Text{Name: one.Name, Text: one.Text, Err: one.Err})
		if one.Err == nil {
			kept[one.Name] = keptFile{text: one.Text, is: identityOf(one.Info), read: now}
		}
	}
	f.kept = kept
	return r
}

// keptFiles are files as they were read in one look. They are not changed any more.
type keptFiles map[string]keptFile

// keptFile is a file as it was read.
type keptFile struct {
	text []byte
	is   identity
	read time.Time
}

// identity changes whenever a file does, if only its times are fine enough.
type identity struct {
	device, inode  uint64
	size           int64
	written, inner syscall.Timespec
}

// identityOf is the identity of a file; the zero one if the system does not say.
func identityOf(info fs.FileInfo) identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{device: stat.Dev, inode: stat.Ino, size: stat.Size, written: stat.Mtim, inner: stat.Ctim}
}

// coarse is more than the times of files may be apart from when they were changed.
const coarse = time.Second

// known gives the text of a file that is as it was read. One that was changed just before it was
// read may have been changed again within the same tick.
func (all keptFiles) known(name string, info fs.FileInfo) ([]byte, bool) {
	k, ok := all[name]
	is := identityOf(info)
	if !ok || is == (identity{}) || is != k.is || k.read.Sub(time.Unix(is.inner.Unix())) <= coarse {
		return nil, false
	}
	return k.text, true
}
