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
	// events has at most one that was not taken.
	events chan change
}

// change is what an event says about a text. Of two that come together the lesser counts.
type change int

const (
	// written is a file that may be written still.
	written change = iota
	// replaced is a file that was renamed to its name: its text is complete.
	replaced
)

// newWatch watches nothing yet.
func newWatch(dir, only string) *watch {
	return &watch{dir: dir, only: only, events: make(chan change, 1)}
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
			if w.matters(filepath.Clean(event.Name)) {
				w.pass(changeOf(event))
			}
		case <-watcher.Errors: //nolint:errcheck // events may have been lost: a look tells
			w.pass(written)
		}
	}
}

// changeOf tells the names that files of the directory have got from those that are new. Of the former fsnotify knows
// what they were called before; it shows that only as text, but events are values.
func changeOf(event fsnotify.Event) change {
	if event.Has(fsnotify.Create) && event != (fsnotify.Event{Name: event.Name, Op: event.Op}) {
		return replaced
	}
	return written
}

// pass hands an event on, together with the one that was not taken yet.
func (w *watch) pass(c change) {
	select {
	case before := <-w.events:
		c = min(c, before)
	default:
	}
	w.events <- c
}

// matters reports whether an event may be about what is read: a file, or what links lead through. What is hidden is
// not read, but the links of a Kubernetes volume lead through a name of two dots.
func (w *watch) matters(name string) bool {
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
