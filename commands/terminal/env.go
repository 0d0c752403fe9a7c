package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/podctl/podctl/podspec/input"
)

// Env is what a command has of the world around it.
type Env struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// OutTTY and ErrTTY report whether the streams are terminals.
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

// quietLibraries keeps the libraries' own logs from the terminal: what matters
// comes back as an error.
func quietLibraries() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// Errors would go to stderr all the same without a logger of their own: this one drops them.
	klog.SetLogger(klog.Logger{})
}

// documentMax is how many bytes are read of a document: a snapshot of a hundred pods has ten
// megabytes.
const documentMax = 32 << 20

// ReadFile reads a document that a flag names; - is standard input.
func (e *Env) ReadFile(ctx context.Context, path string) (text []byte, err error) {
	if path == "-" {
		text, err = input.Until(ctx, func() ([]byte, error) { return input.ReadAtMost(e.In, documentMax) })
	} else {
		text, err = input.ReadNamed(ctx, path, documentMax)
	}
	if named := (*fs.PathError)(nil); err != nil && !errors.As(err, &named) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, err
}
