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

// Process is a process for a running container.
type Process struct {
	Args []string
	// User is who runs it, Dir where, and Env are variables (NAME=VALUE) over those of the
	// container. Without them it has what the container's own process has.
	User *User
	Dir  string
	Env  []string

	Terminal bool
	In       io.Reader
	Out, Err io.Writer
	// Resize waits for the next size of the terminal; false ends it. Nil if nobody watches it.
	Resize func() (width, height uint16, ok bool)
}

// User is who runs a process.
type User struct {
	UID, GID         uint32
	AdditionalGroups []uint32
}

// Exec runs a process in a running container until it ends, and returns its exit code. Beside what
// the process says it is made as the CRI's own exec makes one: with the capabilities, the seccomp
// and AppArmor profiles and the limits of the container, in its cgroup and namespaces. If the
// context ends, the process is killed.
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

// on is the process on the ground of the container's own.
func (p *Process) on(own *specs.Process) *specs.Process {
	made := *own
	made.Args, made.CommandLine, made.Terminal = p.Args, "", p.Terminal
	if p.Terminal {
		made.Env = withEnv(made.Env, "TERM=xterm") // As the CRI does.
	}
	made.Env = withEnv(made.Env, p.Env...)
	if p.Dir != "" {
		made.Cwd = p.Dir
	}
	if p.User != nil {
		made.User = specs.User{UID: p.User.UID, GID: p.User.GID, Umask: own.User.Umask, AdditionalGids: p.User.AdditionalGroups}
	}
	return &made
}

// withEnv puts variables in the place of those of the same names, or at the end.
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

// run starts the process and waits for its end, and for what it still writes.
func (p *Process) run(ctx context.Context, process client.Process, started chan<- struct{}) (int, error) {
	// It is waited for longer than the context lasts: it is killed then.
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

// written is closed when everything is passed on that the process and its children have written.
func written(process client.Process) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		process.IO().Wait()
		close(done)
	}()
	return done
}

// resize passes sizes of the terminal on. One that comes too late has no effect.
func (p *Process) resize(ctx context.Context, process client.Process) {
	for {
		width, height, ok := p.Resize()
		if !ok {
			return
		}
		_ = process.Resize(ctx, uint32(width), uint32(height))
	}
}

// closingReader tells a process of the end of its input, not before it has started: nothing would
// come of it.
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
