package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// program is a program with its global flags.
type program []string

// tool splits a program from its flags; it returns nil if the program is not installed.
func tool(command string) program {
	words := strings.Fields(command)
	if _, err := exec.LookPath(strings.Join(words[:min(1, len(words))], "")); err != nil {
		return nil
	}
	return words
}

// run runs a command and returns its usage and its standard output. The output goes to files, because a reader would
// use the processor while the process runs.
func (p program) run(ctx context.Context, args ...string) (s sample, output string, err error) {
	cmd := exec.CommandContext(ctx, p[0], slices.Concat(p[1:], args)...)
	var files [2]*os.File
	for i := range files {
		if files[i], err = os.CreateTemp("", "podctl-bench-output-"); err != nil {
			return s, "", err
		}
		defer func() { files[i].Close(); os.Remove(files[i].Name()) }() //nolint:errcheck // nothing is lost
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	begun := time.Now()
	err = cmd.Run()
	s.wall = time.Since(begun)
	if cmd.ProcessState != nil {
		s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	stdout, _ := os.ReadFile(files[0].Name()) // Reading a file that was just written cannot fail.
	stderr, _ := os.ReadFile(files[1].Name())
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, stdout, stderr)
	}
	return s, string(stdout), err
}

// do returns a step that runs a command and ignores its output; nil without a command.
func (p program) do(args ...string) step {
	if len(args) == 0 {
		return nil
	}
	return func(ctx context.Context) error {
		_, _, err := p.run(ctx, args...)
		return err
	}
}

// contender returns a contender that runs one command.
func (p program) contender(name string, args ...string) contender {
	return contender{name: name, run: func(ctx context.Context) (sample, error) {
		s, _, err := p.run(ctx, args...)
		return s, err
	}}
}

// firstLine returns the first line of a command's output.
func (p program) firstLine(ctx context.Context, args ...string) string {
	_, text, _ := p.run(ctx, args...) // An unknown version stays empty.
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// processorTime returns the processor time of a running process so far, with that of its threads that have ended. It
// returns zero if the process has ended.
func processorTime(pid int) time.Duration {
	const scheduled = 2 // The clock of the scheduler: CPUCLOCK_SCHED of the kernel, which libc hides.
	var at unix.Timespec
	unix.ClockGettime(int32(^pid)<<3|scheduled, &at) //nolint:errcheck // it stays zero then
	return time.Duration(at.Nano())
}

// field returns the value of "name : value" in a file of /proc.
func field(path, name string) string {
	text, _ := os.ReadFile(path) // A process may have ended.
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// mebibytes returns a field in KiB of a file of /proc as MiB. It returns zero if the file no longer exists.
func mebibytes(path, name string) float64 {
	var kib float64
	fmt.Sscan(field(path, name), &kib) //nolint:errcheck // it stays zero then
	return kib / (1 << 10)
}
