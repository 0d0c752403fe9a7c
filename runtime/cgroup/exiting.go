package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// proc is the directory of processes.
const proc = "/proc"

// isExiting reports whether a process has ended, is exiting, or has a pending SIGKILL.
func isExiting(pid int) bool {
	if pid == 0 {
		return false // It is in another pid namespace, so its state is unknown.
	}
	status, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return isGone(err)
	}
	stat, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return isGone(err)
	}
	return exiting(string(status)) || hasExitFlag(string(stat))
}

// exitFlag is the kernel's PF_EXITING: the process is exiting and releases its resources. On a busy machine that may
// take long.
const exitFlag = 0x4

// hasExitFlag reads the flags in a process's stat file: the seventh field after its name, which may have spaces and
// brackets.
func hasExitFlag(stat string) bool {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&exitFlag != 0
}

// exiting is isExiting for the contents of a process's status file.
func exiting(status string) bool {
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "State":
			if strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X") {
				return true
			}
		case "SigPnd", "ShdPnd":
			if pending, err := strconv.ParseUint(value, 16, 64); err == nil && pending&(1<<(unix.SIGKILL-1)) != 0 {
				return true
			}
		}
	}
	return false
}

// programOf returns the name of a process's program, or an empty string if the process is gone.
func programOf(pid int) string {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
