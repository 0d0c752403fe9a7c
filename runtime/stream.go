package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // the dialer of client-go still speaks it
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	streamhttp "k8s.io/streaming/pkg/httpstream"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
)

// Streams connect a process in a container with the outside. A nil one is not
// connected. With a terminal the process's errors come with its output.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool
	// Resize yields the terminal's sizes; nil when nobody watches it.
	Resize remotecommand.TerminalSizeQueue
}

// ExitError is the exit code of a process that podctl ran for the user.
type ExitError struct{ Code int }

// Error says the code.
func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Exec runs a command in a running container, until it ends. A code other than
// zero is an ExitError.
func (e *Engine) Exec(ctx context.Context, desired *podspec.Desired, container string, command []string, s *Streams) error {
	id, err := e.running(ctx, desired, container)
	if err != nil {
		return err
	}
	err = e.stream(ctx, s, func() (string, error) {
		reply, execErr := e.client.Exec(ctx, &runtimeapi.ExecRequest{
			ContainerId: id, Cmd: command, Tty: s.Terminal,
			Stdin: s.In != nil, Stdout: s.Out != nil, Stderr: s.Err != nil && !s.Terminal,
		})
		return reply.GetUrl(), execErr
	})
	if exit := (*ExitError)(nil); err == nil || errors.As(err, &exit) || ctx.Err() != nil {
		return err
	}
	return &ExecError{Container: container, Pod: plan.RefOf(desired.Pod), Command: command[0], Err: err}
}

// ExecError says that a command could not be run in a container, or that the
// connection to it was lost.
type ExecError struct {
	Pod       plan.PodRef
	Container string
	Command   string
	Err       error
}

// Error says which command in which container, in the runtime's words without the
// layers around them.
func (e *ExecError) Error() string {
	text := e.Err.Error()
	for _, layer := range []string{"error executing command in container: ", "unable to start container process: "} {
		if _, inner, found := strings.Cut(text, layer); found {
			text = inner
		}
	}
	return fmt.Sprintf("pod %s: container %s: running %s: %s", e.Pod, e.Container, e.Command, text)
}

// Unwrap returns the cause.
func (e *ExecError) Unwrap() error { return e.Err }

// NoCommand tells that the container has no such program.
func (e *ExecError) NoCommand() bool {
	text := e.Err.Error()
	return strings.Contains(text, "no such file or directory") || strings.Contains(text, "executable file not found")
}

// Attach connects to the process that a running container was started with, until
// it ends or the input does.
func (e *Engine) Attach(ctx context.Context, desired *podspec.Desired, container string, s *Streams) error {
	id, err := e.running(ctx, desired, container)
	if err != nil {
		return err
	}
	patient := *s
	if s.In != nil {
		patient.In = &lingering{Reader: s.In}
	}
	return e.stream(ctx, &patient, func() (string, error) {
		reply, err := e.client.Attach(ctx, &runtimeapi.AttachRequest{
			ContainerId: id, Tty: s.Terminal,
			Stdin: s.In != nil, Stdout: s.Out != nil, Stderr: s.Err != nil && !s.Terminal,
		})
		return reply.GetUrl(), err
	})
}

// linger is how long an attached input lasts at least. containerd takes the outputs away
// when the input ends; where they have not been attached by then, they stay for good, and
// nobody is told that it is over.
const linger = 200 * time.Millisecond

// lingering is an input whose end is not told too early.
type lingering struct {
	io.Reader
	begun time.Time
}

// Read reads from the input.
func (l *lingering) Read(p []byte) (int, error) {
	if l.begun.IsZero() {
		l.begun = time.Now()
	}
	n, err := l.Reader.Read(p)
	if err != nil {
		time.Sleep(time.Until(l.begun.Add(linger)))
	}
	return n, err
}

// running finds the id of a container that runs.
func (e *Engine) running(ctx context.Context, desired *podspec.Desired, name string) (string, error) {
	ref := plan.RefOf(desired.Pod)
	list, err := e.listContainers(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("looking for container %s of pod %s: %w", name, ref, err)
	}
	for _, c := range list {
		if c.GetMetadata().GetName() == name && c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			return c.GetId(), nil
		}
	}
	return "", fmt.Errorf("container %s of pod %s does not run (`podctl get --containers %s` shows what it does)",
		name, ref, desired.Pod.Name)
}

// stream opens a connection to where the runtime says and carries the streams: by
// WebSocket, or by SPDY where the runtime does not speak the protocol that can end
// an input. The address is good for one try, so the second asks for another.
func (e *Engine) stream(ctx context.Context, s *Streams, open func() (string, error)) error {
	err := e.streamBy(ctx, s, open, func(u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(&restclient.Config{}, "GET", u.String())
	})
	if streamhttp.IsUpgradeFailure(err) {
		var verdict atomic.Bool
		err = e.streamBy(ctx, s, open, func(u *url.URL) (remotecommand.Executor, error) { return spdyExecutor(u, &verdict) })
		if err == nil && !verdict.Load() {
			err = errLostStream
		}
	}
	if exit := utilexec.ExitError(nil); errors.As(err, &exit) && exit.Exited() {
		return &ExitError{Code: exit.ExitStatus()}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// errLostStream ends a stream over which the runtime never said how it ended.
var errLostStream = errors.New("the connection was lost: the runtime was stopped, or gave it up")

// spdyExecutor notes in verdict that the runtime has said how a process ended. The
// library takes silence for success, which it is not: the connection broke.
func spdyExecutor(u *url.URL, verdict *atomic.Bool) (remotecommand.Executor, error) {
	transport, upgrader, err := spdy.RoundTripperFor(&restclient.Config{})
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForTransports(transport, &heardUpgrader{upgrader, verdict}, "POST", u)
}

type heardUpgrader struct {
	spdy.Upgrader
	verdict *atomic.Bool
}

// NewConnection makes a connection whose error stream is listened to.
func (h *heardUpgrader) NewConnection(resp *http.Response) (httpstream.Connection, error) {
	conn, err := h.Upgrader.NewConnection(resp)
	if err != nil {
		return nil, err
	}
	return &heardConnection{conn, h.verdict}, nil
}

type heardConnection struct {
	httpstream.Connection
	verdict *atomic.Bool
}

// CreateStream notes what comes over the stream that tells the end of a process.
func (h *heardConnection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	stream, err := h.Connection.CreateStream(headers)
	if err != nil || headers.Get(v1.StreamType) != v1.StreamTypeError {
		return stream, err
	}
	return &heardStream{stream, h.verdict}, nil
}

type heardStream struct {
	httpstream.Stream
	verdict *atomic.Bool
}

// Read notes that something came.
func (h *heardStream) Read(p []byte) (int, error) {
	n, err := h.Stream.Read(p)
	if n > 0 {
		h.verdict.Store(true)
	}
	return n, err
}

func (e *Engine) streamBy(ctx context.Context, s *Streams, open func() (string, error),
	executor func(*url.URL) (remotecommand.Executor, error),
) error {
	address, err := open()
	if err != nil {
		return err
	}
	u, err := e.streamURL(address)
	if err != nil {
		return err
	}
	x, err := executor(u)
	if err != nil {
		return err
	}
	opts := remotecommand.StreamOptions{Stdin: s.In, Stdout: s.Out, Stderr: s.Err, Tty: s.Terminal, TerminalSizeQueue: s.Resize}
	if s.Terminal {
		opts.Stderr = nil
	}
	return x.StreamWithContext(ctx, opts)
}

// streamURL reads the address of a stream. One without a host, as old runtimes
// give it, is on this machine.
func (e *Engine) streamURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the runtime at %s gave an address for the stream that cannot be read: %w", e.client.Endpoint, err)
	}
	if u.Host == "" {
		u.Host = "localhost"
	}
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	return u, nil
}
