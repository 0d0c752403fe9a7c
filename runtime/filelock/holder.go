package filelock

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/sys/unix"
)

// LockedError reports that another process holds the lock.
type LockedError struct {
	// What is the locked object, for example "pod default/web", if known.
	What string
	Path string
	// Holder is the holder's process id and command from the file.
	Holder string
	// Err is the reason why the wait ended.
	Err error
}

// Error names the holder and includes advice.
func (e *LockedError) Error() string {
	gaveUp := ""
	if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
		gaveUp = ", " + e.Err.Error()
	}
	return fmt.Sprintf("%s is in use by %s%s; wait until it is done, or end it (lock %s)",
		cmp.Or(e.What, "the pod"), e.Holder, gaveUp, e.Path)
}

// Unwrap returns the reason why the wait ended.
func (e *LockedError) Unwrap() error { return e.Err }

// writeHolder writes the holder of the lock to the file, for waiting processes. Errors are ignored, because a full disk
// must not prevent the deletion of a pod. Without words it writes the arguments of this process. The text stays when
// the lock is released, and an equal text is not written again: an agent locks its pods repeatedly.
func (l *Lock) writeHolder(words []string) {
	if len(words) == 0 {
		words = os.Args
	}
	word := fmt.Appendf(nil, "pid %d (%s)\n", os.Getpid(), command(words))
	there := make([]byte, 2*commandMax)
	if n, _ := l.file.ReadAt(there, 0); bytes.Equal(there[:n], word) {
		return
	}
	if l.file.Truncate(0) == nil {
		_, _ = l.file.Write(word)
	}
}

// commandMax limits the written command line, in bytes.
const commandMax = 80

// command returns the parts of a command line that cannot be secret: the program and its plain words. It omits flags,
// and words that could be a URL with credentials.
func command(args []string) string {
	if len(args) == 0 {
		return "podctl"
	}
	words := []string{filepath.Base(args[0])}
	for _, arg := range args[1:] {
		if arg != "" && !strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, ":@=") {
			words = append(words, arg)
		}
	}
	line := strings.Join(words, " ")
	return line[:min(len(line), commandMax)]
}

// readHolder returns the holder of a lock. A program such as flock(1) does not write to the file, which may then name
// an earlier holder. In that case readHolder uses the kernel's data. It removes control characters, because the result
// is shown on a terminal.
func (f *File) readHolder() string {
	text, err := f.readSome()
	if pid := f.lockedBy(); pid > 0 && !bytes.HasPrefix(text, fmt.Appendf(nil, "pid %d ", pid)) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		text, err = fmt.Appendf(nil, "pid %d (%s)", pid, bytes.TrimSpace(name)), nil
	}
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, string(text[:min(len(text), 2*commandMax)]))
	if err != nil || line == "" {
		return "another process"
	}
	return line
}

// lockedBy returns the process that holds the flock of a file according to /proc/locks, or 0 if it is unknown.
func (f *File) lockedBy() (pid int) {
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close() //nolint:errcheck // it was only read
	info, err := f.lstat()
	if err != nil {
		return 0
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	where := fmt.Sprintf("%02x:%02x:%d", unix.Major(file.Dev), unix.Minor(file.Dev), file.Ino)
	// Any user can hold millions of locks.
	lines := bufio.NewScanner(io.LimitReader(locks, 1<<20))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != where {
			continue
		}
		if pid, err = strconv.Atoi(fields[4]); err == nil {
			return pid
		}
	}
	return 0
}

// readSome reads the beginning of the file.
func (f *File) readSome() (text []byte, err error) {
	err = f.in(func(root *os.Root, name string) (err error) {
		file, openErr := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if openErr != nil {
			return openErr
		}
		text, err = io.ReadAll(io.LimitReader(file, 2*commandMax))
		return errors.Join(err, file.Close())
	})
	return text, err
}
