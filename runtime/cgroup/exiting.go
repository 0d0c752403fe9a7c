package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// proc is where the kernel shows processes.
const proc = "/proc"

// isExiting reports whether a process has ended, has begun to exit, or has been killed and has not noticed it yet.
func isExiting(pid int) bool {
	if pid == 0 {
		return false // It is in another pid namespace, and nothing is known of it.
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

// exitFlag is the kernel's PF_EXITING: the process has noticed its end, and gives back what it has. On a busy machine that may take long.
const exitFlag = 0x4

// hasExitFlag reads the flags in a process's stat file, the seventh field after its name, which may have spaces and brackets.
func hasExitFlag(stat string) bool {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&exitFlag != 0
}

// exiting is isExiting of the contents of a process's status file.
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

// programOf is the name of a process's program; empty if it is gone.
func programOf(pid int) string {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
