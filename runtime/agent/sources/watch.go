package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// watch reports changes in a directory, and the replacement of the directory itself.
type watch struct {
	// dir is the watched directory. only is the one relevant file in it, or empty for all.
	dir, only string
	watcher   *fsnotify.Watcher
	// events holds at most one change that was not received yet.
	events chan change

	// mu guards removed: the files that were deleted since the last call of takeRemoved.
	mu      sync.Mutex
	removed []string
}

// change is the kind of a change of a text. If two are merged, the smaller value is used.
type change int

const (
	// written is a file that may still be written.
	written change = iota
	// replaced is a file that was renamed to its name, so that its text is complete.
	replaced
)

// newWatch returns a watch that watches nothing yet.
func newWatch(dir, only string) *watch {
	return &watch{dir: dir, only: only, events: make(chan change, 1)}
}

// renew watches the current directory at the path, until the context ends. If it returns an error, only the periodic
// read finds changes. The same is true without an error if the directory does not exist.
func (w *watch) renew(ctx context.Context) error {
	if w.watcher == nil {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return noticedLate(w.dir, err)
		}
		w.watcher = watcher
		go w.forward(ctx, watcher)
	}
	// This does nothing for a directory that is already watched.
	for _, dir := range []string{filepath.Dir(w.dir), w.dir} {
		if err := w.watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return noticedLate(dir, err)
		}
	}
	return nil
}

// noticedLate adds to an error that changes are noticed late. It replaces the kernel's misleading texts for its limits.
func noticedLate(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		err = errors.New("there are too many inotify instances (sysctl fs.inotify.max_user_instances)")
	case errors.Is(err, syscall.ENOSPC):
		err = errors.New("there are too many inotify watches (sysctl fs.inotify.max_user_watches)")
	}
	return fmt.Errorf("changes in %s are noticed only by periodic reads: %w", dir, err)
}

// forward reports the relevant events.
func (w *watch) forward(ctx context.Context, watcher *fsnotify.Watcher) {
	defer watcher.Close() //nolint:errcheck // no data is lost
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-watcher.Events:
			if name := filepath.Clean(event.Name); w.isRelevant(name) {
				w.noteRemoved(event, name)
				w.send(changeOf(event))
			}
		case <-watcher.Errors: //nolint:errcheck // events may have been lost: read to find out
			w.send(written)
		}
	}
}

// removedMax limits the deleted files that are noted. The others end as files that stay away.
const removedMax = 10000

// noteRemoved notes a deleted file.
func (w *watch) noteRemoved(event fsnotify.Event, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.Has(fsnotify.Remove) && len(w.removed) < removedMax {
		w.removed = append(w.removed, name)
	}
}

// takeRemoved returns the files that were deleted since the last call.
func (w *watch) takeRemoved() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	removed := w.removed
	w.removed = nil
	return removed
}

// changeOf distinguishes files that were renamed within the directory from new files. fsnotify records the old name
// only in an unexported field, so changeOf compares the event with one that has no such name.
func changeOf(event fsnotify.Event) change {
	if event.Has(fsnotify.Create) && event != (fsnotify.Event{Name: event.Name, Op: event.Op}) {
		return replaced
	}
	return written
}

// send sends a change, merged with the one that was not received yet.
func (w *watch) send(c change) {
	select {
	case before := <-w.events:
		c = min(c, before)
	default:
	}
	w.events <- c
}

// isRelevant reports whether an event may concern a file that is read, or a link to it. Hidden files are not read, but
// the links of a Kubernetes volume lead through a name that starts with two dots.
func (w *watch) isRelevant(name string) bool {
	base := filepath.Base(name)
	switch {
	case name == w.dir:
		return true
	case filepath.Dir(name) != w.dir:
		return false
	case strings.HasPrefix(base, ".."):
		return true
	case w.only != "":
		return name == w.only
	}
	return !strings.HasPrefix(base, ".")
}
