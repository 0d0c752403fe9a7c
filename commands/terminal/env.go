package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
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

// System returns the environment of the process. It also disables the logs of libraries, and sets HOME if it is
// missing.
func System() *Env {
	quietLibraries()
	setHome()
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

// setHome sets HOME if it is missing, as in a systemd unit without User=. The agent then uses the same configuration
// and registry credentials as commands of the same user, and credential helpers find their files.
func setHome() {
	if os.Getenv("HOME") != "" {
		return
	}
	if u, err := user.Current(); err == nil {
		_ = os.Setenv("HOME", u.HomeDir) // It fails only for invalid names.
	}
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
