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

// Env is the environment of a command.
type Env struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// OutTTY and ErrTTY report whether the streams are terminals.
	OutTTY bool
	ErrTTY bool
	Now    func() time.Time
	Getenv func(string) string
	// SystemConfig is the configuration file of all users. It may be empty.
	SystemConfig string
}

// System returns the environment of the process. It also disables the logs of libraries.
func System() *Env {
	quietLibraries()
	in, out, err := os.Stdin, os.Stdout, os.Stderr //nolint:forbidigo // only here a command accesses the process
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

// quietLibraries disables the logs of libraries. Relevant problems are returned as errors.
func quietLibraries() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// Without a logger, klog still writes errors to stderr. The empty logger drops them.
	klog.SetLogger(klog.Logger{})
}

// documentMax is the maximum size of a document in bytes. A snapshot of a hundred pods has ten megabytes.
const documentMax = 32 << 20

// ReadFile reads a document that a flag names. The name - is stdin.
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
