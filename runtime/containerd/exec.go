package containerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Process is a process to run in a running container.
type Process struct {
	Args []string
	// User, Dir and Env override the settings of the container's own process. Env holds variables (NAME=VALUE).
	User *User
	Dir  string
	Env  []string

	Terminal bool
	In       io.Reader
	Out, Err io.Writer
	// Resize waits for the next size of the terminal, and returns false at the end. It is nil if the size never
	// changes.
	Resize func() (width, height uint16, ok bool)
}

// User is the user of a process.
type User struct {
	UID, GID         uint32
	AdditionalGroups []uint32
}

// Exec runs a process in a running container until it ends, and returns its exit code. Other settings are as in the
// CRI's own exec: the capabilities, the seccomp and AppArmor profiles, the limits, the cgroup and the namespaces of the
// container. If the context ends, Exec kills the process. The CRI has no user, directory and environment for a process,
// and a wrapper such as su or env would have to be in the image.
func (s *Store) Exec(ctx context.Context, containerID string, p *Process) (code int, err error) {
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	container, err := s.client.LoadContainer(ctx, containerID)
	if err != nil {
		return 0, s.explain(err)
	}
	spec, err := container.Spec(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the definition of the container: %w", err)
	}
	task, err := container.Task(ctx, nil)
	if err != nil {
		return 0, err
	}
	in := &closingReader{Reader: p.In, started: make(chan struct{})}
	process, err := task.Exec(ctx, "podctl-"+rand.Text(), p.on(spec.Process), p.io(in))
	if err != nil {
		return 0, err
	}
	in.end = func() error { return process.CloseIO(ctx, client.WithStdinCloser) }
	code, err = p.run(ctx, process, in.started)
	_, deleteErr := process.Delete(context.WithoutCancel(ctx), client.WithProcessKill)
	if errdefs.IsNotFound(deleteErr) {
		deleteErr = nil
	}
	return code, errors.Join(err, deleteErr)
}

// on returns the process with the settings of the container's own process as defaults.
func (p *Process) on(own *specs.Process) *specs.Process {
	made := *own
	made.Args, made.CommandLine, made.Terminal = p.Args, "", p.Terminal
	if p.Terminal {
		made.Env = withEnv(made.Env, "TERM=xterm") // The CRI sets this, too.
	}
	made.Env = withEnv(made.Env, p.Env...)
	if p.Dir != "" {
		made.Cwd = p.Dir
	}
	if p.User != nil {
		made.User = specs.User{
			UID:            p.User.UID,
			GID:            p.User.GID,
			Umask:          own.User.Umask,
			AdditionalGids: p.User.AdditionalGroups,
		}
	}
	return &made
}

// withEnv replaces variables with the same names, and appends the others.
func withEnv(env []string, variables ...string) []string {
	made := append([]string(nil), env...)
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		replaced := false
		for i := range made {
			if strings.HasPrefix(made[i], name+"=") {
				made[i], replaced = variable, true
			}
		}
		if !replaced {
			made = append(made, variable)
		}
	}
	return made
}

func (p *Process) io(in *closingReader) cio.Creator {
	streams := func(opt *cio.Streams) {
		opt.Stdout, opt.Stderr, opt.Terminal = p.Out, p.Err, p.Terminal
		if p.In != nil {
			opt.Stdin = in
		}
		if p.Terminal {
			opt.Stderr = nil
		}
	}
	return cio.NewCreator(streams)
}

// run starts the process and waits until it has ended and its output is complete.
func (p *Process) run(ctx context.Context, process client.Process, started chan<- struct{}) (int, error) {
	// Wait longer than the context, because the process is killed when it ends.
	ended, err := process.Wait(context.WithoutCancel(ctx))
	if err != nil {
		return 0, err
	}
	if err := process.Start(ctx); err != nil {
		return 0, err
	}
	close(started)
	if p.Terminal && p.Resize != nil {
		go p.resize(ctx, process)
	}
	select {
	case status := <-ended:
		select {
		case <-written(process):
		case <-ctx.Done():
		}
		return int(status.ExitCode()), status.Error()
	case <-ctx.Done():
		if err := process.Kill(context.WithoutCancel(ctx), syscall.SIGKILL); err != nil && !errdefs.IsNotFound(err) {
			return 0, err
		}
		<-ended
		return 0, context.Cause(ctx)
	}
}

// written is closed after the output of the process and its children was passed on.
func written(process client.Process) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		process.IO().Wait()
		close(done)
	}()
	return done
}

// resize passes sizes of the terminal on. A late one has no effect.
func (p *Process) resize(ctx context.Context, process client.Process) {
	for {
		width, height, ok := p.Resize()
		if !ok {
			return
		}
		_ = process.Resize(ctx, uint32(width), uint32(height))
	}
}

// closingReader notifies a process of the end of its input. It waits until the process has started, because an earlier
// notification has no effect.
type closingReader struct {
	io.Reader
	started chan struct{}
	end     func() error
}

// Read reads from the input.
func (r *closingReader) Read(buffer []byte) (int, error) {
	n, err := r.Reader.Read(buffer)
	if errors.Is(err, io.EOF) {
		go func() {
			<-r.started
			_ = r.end() // The process may have ended.
		}()
	}
	return n, err
}
