package logfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/sleep"
)

const (
	// followPeriod is the interval for checking a log without notifications.
	followPeriod = time.Second
	// handover is how long a runtime may still write to a file after it has opened the next one.
	handover = 50 * time.Millisecond
)

// follow shows new lines, also after rotations, until the container has ended and everything is shown.
func (r *reading) follow(ctx context.Context, running Running) error {
	w := watch(r.dir.Dir)
	defer w.close()
	for ended := false; ; {
		advanced, err := r.advance(ctx)
		switch {
		case err != nil:
			return err
		case advanced:
			continue
		case ended:
			return r.rest()
		}
		if err = r.out.flush(); err != nil {
			return err
		}
		alive, err := running(ctx)
		if err != nil {
			return err
		}
		if ended = !alive; ended {
			continue
		}
		if err = w.wait(ctx, followPeriod); err != nil {
			return err
		}
	}
}

func (r *reading) rest() error {
	if r.current == nil {
		return nil
	}
	return r.current.copyRest(r.out)
}

// advance shows new lines, and goes to the next file if the log was rotated.
func (r *reading) advance(ctx context.Context) (bool, error) {
	if err := r.drain(ctx); err != nil {
		return false, err
	}
	next, err := r.successor()
	if err != nil || next == nil {
		return false, err
	}
	if r.current != nil {
		err = errors.Join(r.out.flush(), sleep.For(ctx, handover))
	}
	if err == nil {
		err = r.drain(ctx)
	}
	if err == nil {
		err = r.rest()
	}
	if err = errors.Join(err, r.close()); err != nil {
		r.current = nil
		return false, next.closed(err)
	}
	r.current = next
	if next.zip {
		return true, next.wrap(next.beginZip(nil))
	}
	return true, next.beginFollowing(nil)
}

func (r *reading) drain(ctx context.Context) error {
	if r.current == nil {
		return nil
	}
	return r.current.copy(ctx, r.out)
}

// successor opens the file after the current one. It returns nil if there is none.
func (r *reading) successor() (*source, error) {
	next, err := r.dir.open(r.dir.base)
	if err != nil {
		return nil, safefs.IgnoreMissing(err)
	}
	if r.current == nil {
		return next, nil
	}
	if os.SameFile(next.info, r.current.info) {
		return nil, next.close()
	}
	// The log may have been rotated several times, so read the files between, too.
	files, err := r.dir.rotated()
	if err != nil {
		return nil, next.closed(err)
	}
	after := r.current.followers(files, r.dir.base)
	if len(after) == 0 {
		return next, nil
	}
	if err = next.close(); err != nil {
		return nil, err
	}
	return r.dir.open(after[0].name)
}

// followers returns the rotated files after this one. A file that was compressed since is another file with the same
// name. It returns none if the place of this one is unknown.
func (s *source) followers(files []aside, base string) []aside {
	for i := range files {
		if os.SameFile(files[i].info, s.info) {
			return files[i+1:]
		}
	}
	name, err := os.Readlink(safefs.ProcPath(s.file))
	name = filepath.Base(strings.TrimSuffix(name, " (deleted)"))
	if err != nil || !strings.HasPrefix(name, base+".") {
		return nil
	}
	for i := range files {
		if strings.TrimSuffix(files[i].name, Compressed) > strings.TrimSuffix(name, Compressed) {
			return files[i:]
		}
	}
	return nil
}

// watcher waits for changes in a directory.
type watcher struct {
	// file is nil if notifications are not available.
	file   *os.File
	buffer [4096]byte
}

// watch starts to watch a directory. If the system has no watches left, the log is checked periodically.
func watch(dir *safefs.Dir) *watcher {
	handle, err := dir.File()
	if err != nil {
		return &watcher{}
	}
	defer handle.Close() //nolint:errcheck // A handle on a directory.
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return &watcher{}
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "inotify")}
	// Use the descriptor, because the name may lead to another directory by now.
	const changes = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	if _, err = unix.InotifyAddWatch(fd, safefs.ProcPath(handle), changes); err != nil {
		w.close()
		w.file = nil
	}
	return w
}

func (w *watcher) close() {
	if w.file != nil {
		w.file.Close() //nolint:errcheck // nothing was written to it
	}
}

// wait returns after a change or a timeout.
func (w *watcher) wait(ctx context.Context, limit time.Duration) error {
	if w.file == nil {
		return sleep.For(ctx, limit)
	}
	if err := w.file.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		w.file.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it wakes the reader
	})
	defer stop()
	_, err := w.file.Read(w.buffer[:])
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	}
	return err
}
