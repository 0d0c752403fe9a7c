package runtimetest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracedVar makes a test binary replace itself with the traced program.
const tracedVar = "PODCTL_TEST_TRACED"

// BeTraced is called first by the TestMain of tests that use Trace. In a process started by Trace, it makes the kernel
// stop only at calls that may change a file system. Stopping at all calls would take too long. Then it executes the
// traced program.
func BeTraced() {
	if os.Getenv(tracedVar) == "" {
		return
	}
	err := os.Unsetenv(tracedVar)
	if err == nil {
		err = installFilter(filter())
	}
	if err == nil {
		err = unix.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	panic(fmt.Sprintf("becoming %s: %v", os.Args[1], err))
}

// installFilter sets a filter of system calls for all threads of the process. It stays when the process executes
// another program.
func installFilter(program []unix.SockFilter) error {
	if os.Geteuid() != 0 {
		// Other users may only set a filter if they cannot gain privileges.
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("installing a filter of system calls: %w", errno)
	}
	return nil
}

// Offsets of a call's number and of its third argument in the kernel's struct seccomp_data.
const (
	numberOffset = 0
	flagsOffset  = 32
)

// filter stops at the calls that may change a file system.
func filter() []unix.SockFilter {
	numbers := slices.Concat(
		slices.Sorted(maps.Keys(changesOfPaths())),
		slices.Sorted(maps.Keys(changesOfFiles())),
		[]uint64{unix.SYS_OPENAT2})
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: numberOffset}}
	for i, number := range numbers {
		// Jump to the last instruction.
		toTrace := uint8(len(numbers) - i + 3)
		program = append(program, unix.SockFilter{
			Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
			Jt:   toTrace,
			K:    uint32(number),
		})
	}
	return append(program,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 2, K: unix.SYS_OPENAT},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: flagsOffset},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: 1, K: makingFlags},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE},
	)
}
