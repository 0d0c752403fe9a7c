package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Traced is the result of a traced program.
type Traced struct {
	// Changes lists its system calls that change a file system, in order, each with its path.
	Changes []string
	// Killed is set if it was killed at the last of them, which was then not executed.
	Killed bool
	// ExitCode is the program's exit code, or -1 if a signal ended it.
	ExitCode int
}

// Program is the program to trace.
type Program struct {
	// Args are its name and arguments, Env its environment.
	Args, Env []string
	// Output receives its output.
	Output *os.File
	// Started, if not nil, is called with its process id once it runs.
	Started func(pid int)
}

// Trace runs a program to its end and records its changes to file systems. If nth is above zero, it kills the program
// with SIGKILL just before its nth change. The test's TestMain must call BeTraced.
func Trace(ctx context.Context, p Program, nth int) (*Traced, error) {
	// Only the thread that starts a traced process may trace it.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	process, err := os.StartProcess(os.Args[0], append([]string{os.Args[0]}, p.Args...), &os.ProcAttr{
		Env:   append(p.Env, tracedVar+"=1"),
		Files: []*os.File{nil, p.Output, p.Output},
		Sys:   &unix.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return nil, fmt.Errorf("tracing %s: %w", p.Args[0], err)
	}
	if p.Started != nil {
		p.Started(process.Pid)
	}
	t := &tracer{pid: process.Pid, nth: nth, result: &Traced{ExitCode: -1}}
	//nolint:errcheck // it may be gone already
	stop := context.AfterFunc(ctx, func() { unix.Kill(t.pid, unix.SIGKILL) })
	defer stop()
	if err := errors.Join(t.follow(), process.Release()); err != nil {
		return nil, fmt.Errorf("tracing %s: %w", p.Args[0], err)
	}
	return t.result, ctx.Err()
}

// tracer traces all threads of one process.
type tracer struct {
	pid, nth int
	result   *Traced
}

// traceOptions trace all threads, report the filter's stops, and end the process with the test.
const traceOptions = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL

// follow lets the process run from one stop to the next until it has ended.
func (t *tracer) follow() error {
	var status unix.WaitStatus
	if _, err := wait(t.pid, &status); err != nil {
		return err
	}
	if err := unix.PtraceSetOptions(t.pid, traceOptions); err != nil {
		return errors.Join(err, unix.Kill(t.pid, unix.SIGKILL))
	}
	for tid := t.pid; ; {
		signal, gone := t.judge(tid, status)
		if gone {
			return nil
		}
		if status.Stopped() {
			// A thread that was already ended by SIGKILL cannot be continued.
			if err := unix.PtraceCont(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("letting thread %d go on: %w", tid, err)
			}
		}
		var err error
		if tid, err = wait(-1, &status); err != nil {
			return err
		}
	}
}

// wait waits for a stop or the end of a traced thread, and for no other process of the test.
func wait(pid int, status *unix.WaitStatus) (int, error) {
	for {
		tid, err := unix.Wait4(pid, status, unix.WALL|unix.WNOTHREAD, nil)
		if !errors.Is(err, unix.EINTR) {
			return tid, err
		}
	}
}

// judge handles one stop. It returns the signal for the thread, and whether the process has ended.
func (t *tracer) judge(tid int, status unix.WaitStatus) (signal int, gone bool) {
	switch {
	case !status.Stopped():
		if tid == t.pid && status.Exited() {
			t.result.ExitCode = status.ExitStatus()
		}
		return 0, tid == t.pid
	case status.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		t.atSyscall(tid)
		return 0, false
	case status.StopSignal() == unix.SIGTRAP, status.StopSignal() == unix.SIGSTOP:
		// The kernel reports a new program or thread.
		return 0, false
	}
	return int(status.StopSignal()), false
}

func (t *tracer) atSyscall(tid int) {
	info, ok := syscallOf(tid)
	if !ok || t.result.Killed {
		return
	}
	what := info.change(tid)
	if what == "" {
		return
	}
	t.result.Changes = append(t.result.Changes, what)
	if len(t.result.Changes) == t.nth {
		t.result.Killed = unix.Kill(t.pid, unix.SIGKILL) == nil
	}
}

// syscallInfo is the kernel's struct ptrace_syscall_info at a stop of the filter.
type syscallInfo struct {
	op     uint8
	_      [3]uint8
	_      uint32
	_      [2]uint64
	number uint64
	args   [6]uint64
}

// The ptrace request for it, and its op at such a stop.
const (
	ptraceGetSyscallInfo = 0x420e
	syscallSeccomp       = 3
)

// syscallOf returns the system call that a thread is about to make.
func syscallOf(tid int) (syscallInfo, bool) {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(tid),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	return info, errno == 0 && info.op == syscallSeccomp
}

// change describes the change of a call to a file system, or returns an empty string. Calls whose effect a kill cannot
// change, like fsync, do not count.
func (s *syscallInfo) change(tid int) string {
	if c, ok := changesOfPaths()[s.number]; ok {
		return c.name + " " + s.text(tid, c.arg)
	}
	if c, ok := changesOfFiles()[s.number]; ok {
		// Standard output is not a file of the program.
		if path := file(tid, s.args[c.arg]); path != "" && s.args[c.arg] > 2 {
			return c.name + " " + path
		}
		return ""
	}
	if s.opens(tid) {
		return "open " + s.text(tid, 1)
	}
	return ""
}

// file returns the regular file of a descriptor.
func file(tid int, fd uint64) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, fd))
	if err != nil || !strings.HasPrefix(path, "/") {
		return ""
	}
	if strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") {
		return ""
	}
	return path
}

// makingFlags are the flags of an open that creates or empties a file. The last one is that of O_TMPFILE alone.
const makingFlags = unix.O_CREAT | unix.O_TRUNC | (unix.O_TMPFILE &^ unix.O_DIRECTORY)

// opens reports whether a call opens a file and may create or empty it.
func (s *syscallInfo) opens(tid int) bool {
	flags := s.args[2]
	switch s.number {
	case unix.SYS_OPENAT:
	case unix.SYS_OPENAT2:
		flags = 0
		for i, b := range s.memory(tid, 2, 8) {
			flags |= uint64(b) << (8 * i)
		}
	default:
		return false
	}
	return flags&makingFlags != 0
}

// text returns the path that an argument points to.
func (s *syscallInfo) text(tid, arg int) string {
	text, _, _ := strings.Cut(string(s.memory(tid, arg, 512)), "\x00")
	return text
}

// memory returns the memory that an argument points to, as far as it can be read.
func (s *syscallInfo) memory(tid, arg, size int) []byte {
	data := make([]byte, size)
	file, err := os.Open(fmt.Sprintf("/proc/%d/mem", tid))
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // it was read
	n, _ := file.ReadAt(data, int64(s.args[arg]))
	return data[:max(n, 0)]
}

// change names a call, and the index of the argument with its file.
type change struct {
	name string
	arg  int
}

// changesOfPaths returns the calls that change the file with a path.
func changesOfPaths() map[uint64]change {
	return map[uint64]change{
		unix.SYS_MKDIRAT: {"mkdir", 1}, unix.SYS_MKNODAT: {"mknod", 1}, unix.SYS_UNLINKAT: {"unlink", 1},
		unix.SYS_SYMLINKAT: {"symlink", 2}, unix.SYS_LINKAT: {"link", 3},
		unix.SYS_RENAMEAT: {"rename", 3}, unix.SYS_RENAMEAT2: {"rename", 3},
		unix.SYS_FCHMODAT: {"chmod", 1}, unix.SYS_FCHMODAT2: {"chmod", 1}, unix.SYS_FCHOWNAT: {"chown", 1},
		unix.SYS_UTIMENSAT: {"utimes", 1}, unix.SYS_TRUNCATE: {"truncate", 0},
		unix.SYS_SETXATTR: {"setxattr", 0}, unix.SYS_LSETXATTR: {"setxattr", 0},
		unix.SYS_MOUNT: {"mount", 1}, unix.SYS_UMOUNT2: {"umount", 0},
		unix.SYS_MOVE_MOUNT: {"move_mount", 3}, unix.SYS_MOUNT_SETATTR: {"mount_setattr", 1},
	}
}

// changesOfFiles returns the calls that change an open file.
func changesOfFiles() map[uint64]change {
	return map[uint64]change{
		unix.SYS_WRITE: {"write", 0}, unix.SYS_PWRITE64: {"write", 0},
		unix.SYS_WRITEV: {"write", 0}, unix.SYS_PWRITEV: {"write", 0},
		unix.SYS_SENDFILE: {"write", 0}, unix.SYS_COPY_FILE_RANGE: {"write", 2}, unix.SYS_SPLICE: {"write", 2},
		unix.SYS_FTRUNCATE: {"truncate", 0}, unix.SYS_FALLOCATE: {"allocate", 0},
		unix.SYS_FCHMOD: {"chmod", 0}, unix.SYS_FCHOWN: {"chown", 0}, unix.SYS_FSETXATTR: {"setxattr", 0},
	}
}
