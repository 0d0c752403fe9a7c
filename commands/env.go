package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/podctl/podctl/podspec/input"
)

// Env is what a command has of the world around it.
type Env struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// OutTTY and ErrTTY tell that the streams are terminals.
	OutTTY bool
	ErrTTY bool
	Now    func() time.Time
	Getenv func(string) string
	// SystemConfig is the configuration file of all users; empty means none.
	SystemConfig string
}

// System is the process's own environment, in which libraries are quiet.
func System() *Env {
	quietLibraries()
	in, out, err := os.Stdin, os.Stdout, os.Stderr //nolint:forbidigo // the one place where a command meets the process
	return &Env{
		In:     in,
		Out:    out,
		Err:    err,
		OutTTY: term.IsTerminal(int(out.Fd())),
		ErrTTY: term.IsTerminal(int(err.Fd())),
		Now:    time.Now,
		Getenv: os.Getenv,

		SystemConfig: "/etc/podctl/config.yaml",
	}
}

// What is read of files, in bytes: a snapshot of a hundred pods has ten megabytes,
// a configuration a few lines.
const (
	documentMax = 32 << 20
	configMax   = 64 << 10
)

// readFile reads a document that a flag names; - is standard input.
func (e *Env) readFile(ctx context.Context, path string) ([]byte, error) {
	text, err := input.ReadUntil(ctx, func() ([]byte, error) {
		if path == "-" {
			return input.ReadAtMost(e.In, documentMax)
		}
		return input.ReadFileAtMost(path, documentMax)
	})
	if named := (*fs.PathError)(nil); err != nil && !errors.As(err, &named) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, err
}
