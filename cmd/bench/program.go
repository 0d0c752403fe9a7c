package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
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
