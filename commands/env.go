package commands

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
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
}

// System is the process's own environment.
func System() *Env {
	return &Env{
		In:     os.Stdin,
		Out:    os.Stdout,
		Err:    os.Stderr,
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Now:    time.Now,
		Getenv: os.Getenv,
	}
}
