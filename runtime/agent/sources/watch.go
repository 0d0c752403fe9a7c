package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// watch reports what changes in a directory, and when the directory itself is replaced.
type watch struct {
	// dir is watched; only is the one file that matters in it, or empty for all.
	dir, only string
	watcher   *fsnotify.Watcher
	events    chan struct{}
}

// newWatch watches nothing yet.
func newWatch(dir, only string) *watch {
	return &watch{dir: dir, only: only, events: make(chan struct{}, 1)}
}

// renew watches what is at the path now, until the context ends. The error says that changes are
// found by looking only. A directory that is not there is found so as well.
func (w *watch) renew(ctx context.Context) error {
	if w.watcher == nil {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return late(w.dir, err)
		}
		w.watcher = watcher
		go w.forward(ctx, watcher)
	}
	// What is watched already stays so, unless it is another directory now.
	for _, dir := range []string{filepath.Dir(w.dir), w.dir} {
		if err := w.watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return late(dir, err)
		}
	}
	return nil
}

// late says that changes are noticed late. The kernel's words for its limits mislead.
func late(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		err = errors.New("there are too many inotify instances (sysctl fs.inotify.max_user_instances)")
	case errors.Is(err, syscall.ENOSPC):
		err = errors.New("there are too many inotify watches (sysctl fs.inotify.max_user_watches)")
	}
	return fmt.Errorf("changes in %s are noticed only by looking from time to time: %w", dir, err)
}

// forward passes on the events that matter.
func (w *watch) forward(ctx context.Context, watcher *fsnotify.Watcher) {
	defer watcher.Close() //nolint:errcheck // nothing is lost
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-watcher.Events:
			if !w.matters(event.Name) {
				continue
			}
		case <-watcher.Errors: //nolint:errcheck // events may have been lost: a look tells
		}
		select {
		case w.events <- struct{}{}:
		default:
		}
	}
}

// matters reports whether an event is about what is read. The links of a Kubernetes volume lead
// through a name of two dots.
func (w *watch) matters(name string) bool {
	switch {
	case name == w.dir:
		return true
	case filepath.Dir(name) != w.dir:
		return false
	}
	return w.only == "" || name == w.only || strings.HasPrefix(filepath.Base(name), "..")
}
