package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// Limits of the connection, as in the kubelet (cri-client: maxMsgSize, connectionBackoff).
const (
	maxMessageSize    = 16 << 20
	connectBackoffMin = 100 * time.Millisecond
	connectBackoffMax = 3 * time.Second
	connectTimeout    = 5 * time.Second
	// deadlineSlack is how much earlier than podctl the runtime may notice the end of a call's deadline.
	deadlineSlack = 50 * time.Millisecond
)

// DefaultRequestTimeout limits a CRI call that does not wait for anything else (kubelet: runtimeRequestTimeout).
const DefaultRequestTimeout = 2 * time.Minute

// Client is a connection to the runtime service and the image service of one container runtime.
type Client struct {
	runtimeapi.RuntimeServiceClient
	Images runtimeapi.ImageServiceClient

	Endpoint Endpoint
	// Timeout limits every call that does not wait for a container.
	Timeout time.Duration
	// Log, if not nil, logs every call without its contents. It is set before the first call.
	Log *slog.Logger
	// Called, if not nil, is called after every call with its method and duration. It is set before the first call.
	Called func(method string, took time.Duration, err error)
	// Starting is called with a text for the user when podctl waits for a runtime that is starting. Calls are repeated
	// for some seconds until the runtime has answered once. If Starting is nil, calls are not repeated.
	Starting func(text string)
	conn     *grpc.ClientConn
	images   *grpc.ClientConn
	// ImageEndpoint is where the image service listens.
	ImageEndpoint Endpoint
}

// Connect prepares the connection, but sends nothing before the first call. An empty imageEndpoint means that the image
// service uses the same endpoint.
func Connect(endpoint Endpoint, imageEndpoint string, timeout time.Duration) (*Client, error) {
	if err := checkSocket(endpoint); err != nil {
		return nil, err
	}
	c := &Client{Endpoint: endpoint, Timeout: timeout, ImageEndpoint: endpoint}
	conn, err := c.dial(endpoint)
	if err != nil {
		return nil, err
	}
	c.conn, c.images = conn, conn
	if imageEndpoint != "" {
		c.ImageEndpoint = Endpoint{Address: normalAddress(imageEndpoint), Origin: "--image-endpoint"}
		if err = checkSocket(c.ImageEndpoint); err == nil {
			c.images, err = c.dial(c.ImageEndpoint)
		}
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	c.RuntimeServiceClient = runtimeapi.NewRuntimeServiceClient(c.conn)
	c.Images = runtimeapi.NewImageServiceClient(c.images)
	return c, nil
}

// Close closes the connections.
func (c *Client) Close() error {
	if c.images != c.conn {
		return errors.Join(c.conn.Close(), c.images.Close())
	}
	return c.conn.Close()
}

// connection is the part of the client that belongs to one endpoint.
type connection struct {
	*Client
	endpoint Endpoint
	// answered is set after the first answer.
	answered *atomic.Bool
}

func (c *Client) dial(endpoint Endpoint) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(endpoint.Address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageSize)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay:  connectBackoffMin,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   connectBackoffMax,
			},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithUnaryInterceptor(connection{c, endpoint, &atomic.Bool{}}.intercept),
		grpc.WithStreamInterceptor(c.logStream),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the container runtime at %s: %w", endpoint, err)
	}
	return conn, nil
}

// intercept makes a call, and repeats it while the runtime is starting.
//
//nolint:revive // the signature is grpc's
func (c connection) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	var starting starter
	for {
		err, answer := c.call(ctx, method, req, reply, conn, invoke, opts...)
		if !starting.again(ctx, c, conn, answer) {
			return err
		}
	}
}

// call sets a deadline, makes the call and explains errors. err is the original error.
//
//nolint:revive // the signature is grpc's
func (c connection) call(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) (inWords, err error) {
	timeout := c.Timeout + c.waitsFor(req)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	bounded, end := StartSpan(bounded, path.Base(method))
	begun := time.Now()
	err = invoke(propagate(bounded), method, req, reply, conn, opts...)
	end(err)
	c.logCall(ctx, method, time.Since(begun), err)
	switch {
	case err == nil:
		return nil, nil
	case deadlineExceeded(ctx, err):
		return cancelled(context.Cause(ctx), c.endpoint), err
	case bounded.Err() != nil, brokenOff(err, begun.Add(timeout)):
		return &UnavailableError{
			Endpoint: c.endpoint, Err: err,
			Reason: fmt.Sprintf("gave no answer within %s (--request-timeout)", timeout),
		}, err
	case status.Code(err) == codes.Unavailable:
		return &UnavailableError{Endpoint: c.endpoint, Err: err, Reason: "does not answer; is it running?"}, err
	case isUninitialised(err):
		return &UnavailableError{
			Endpoint: c.endpoint,
			Err:      status.Error(codes.Unavailable, err.Error()),
			Reason:   "is starting; try again",
		}, err
	}
	return &callError{err: err}, err
}

// brokenOff reports whether the server ended the call because the deadline was reached.
func brokenOff(err error, deadline time.Time) bool {
	code := status.Code(err)
	return (code == codes.Canceled || code == codes.DeadlineExceeded) && time.Until(deadline) < deadlineSlack
}

// deadlineExceeded reports whether the caller's context has ended. If the server noticed the deadline first, it waits
// for the context, which ends at once.
func deadlineExceeded(ctx context.Context, err error) bool {
	if deadline, ok := ctx.Deadline(); ok && brokenOff(err, deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// cancelledError reports that the caller's time ended during a call to the runtime.
type cancelledError struct {
	endpoint Endpoint
	cause    error
}

// Error also names the runtime, because it may be the reason for the delay.
func (e *cancelledError) Error() string {
	return fmt.Sprintf("%v, in a call to the container runtime at %s", e.cause, e.endpoint)
}

// Unwrap returns the cause.
func (e *cancelledError) Unwrap() error { return e.cause }

// cancelled returns the error of a call that the caller ended. An interrupt by the user needs no explanation.
func cancelled(cause error, endpoint Endpoint) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	return &cancelledError{endpoint: endpoint, cause: cause}
}

// logCall logs a call without request and reply, because they may have values of Secrets.
func (c *Client) logCall(ctx context.Context, method string, took time.Duration, err error) {
	if c.Called != nil {
		c.Called(path.Base(method), took, err)
	}
	if c.Log != nil {
		c.Log.LogAttrs(ctx, slog.LevelDebug, "CRI call",
			slog.String("method", path.Base(method)),
			slog.Duration("duration", took),
			slog.String("code", status.Code(err).String()))
	}
}

// logStream logs that a stream was opened.
//
//nolint:revive // the signature is grpc's
func (c *Client) logStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	begun := time.Now()
	stream, err := streamer(ctx, desc, conn, method, opts...)
	c.logCall(ctx, method, time.Since(begun), err)
	return stream, err
}

// callError is an error from the runtime. It omits the transport's "rpc error: code = …" and explains codes whose
// meaning is not in the message.
type callError struct{ err error }

func (e *callError) Error() string {
	reported, _ := status.FromError(e.err)
	if meaning := meanings()[reported.Code()]; meaning != "" {
		return meaning + ": " + reported.Message() + advice(reported.Message())
	}
	return reported.Message() + advice(reported.Message())
}

// advice returns advice for messages of the runtime that have none. The file of a network namespace is busy if another
// mount covers or holds it. `ip netns add` causes this by mounting over the directory of the runtime's namespaces.
func advice(reported string) string {
	if strings.Contains(reported, "netns") && strings.Contains(reported, "device or resource busy") {
		return "; something else has mounted the file, for example `ip netns add` after the runtime had started: " +
			"run `umount` on it until it is no longer mounted, and apply again"
	}
	return ""
}

// meanings explains codes whose meaning the runtime's messages omit.
func meanings() map[codes.Code]string {
	return map[codes.Code]string{
		codes.DeadlineExceeded:  "the runtime's own timeout expired",
		codes.Canceled:          "the runtime cancelled the call",
		codes.ResourceExhausted: "the runtime lacks resources",
		codes.Internal:          "the runtime failed",
	}
}

func (e *callError) Unwrap() error { return e.err }

// waitsFor returns how long a call may wait for something besides the runtime, such as the end of a container, a
// command, or the setup of a network (kubelet: twice the timeout for a sandbox).
func (c *Client) waitsFor(req any) time.Duration {
	switch req := req.(type) {
	case *runtimeapi.StopContainerRequest:
		return model.Seconds(req.GetTimeout())
	case *runtimeapi.ExecSyncRequest:
		if req.GetTimeout() == 0 {
			return 24 * time.Hour
		}
		return model.Seconds(req.GetTimeout())
	case *runtimeapi.RunPodSandboxRequest:
		return c.Timeout
	case *runtimeapi.PullImageRequest:
		return time.Hour
	}
	return 0
}

// UnavailableError reports that the runtime cannot be reached.
type UnavailableError struct {
	Endpoint Endpoint
	Reason   string
	Err      error
}

// Error names the endpoint, its origin and the reason.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("container runtime at %s: %s", e.Endpoint, e.Reason)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// checkSocket explains why a unix socket cannot be used.
func checkSocket(e Endpoint) error {
	socket := e.Socket()
	if socket == "" {
		return nil
	}
	info, err := os.Stat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &UnavailableError{
			Endpoint: e,
			Err:      err,
			Reason:   "there is no such socket; is the runtime running? `podctl node up` starts one",
		}
	case errors.Is(err, fs.ErrPermission):
		return &UnavailableError{Endpoint: e, Err: err, Reason: "permission denied; run podctl as root"}
	case err != nil:
		return &UnavailableError{Endpoint: e, Err: err, Reason: err.Error()}
	case info.Mode().Type() != fs.ModeSocket:
		return &UnavailableError{Endpoint: e, Err: fs.ErrInvalid, Reason: "is not a socket"}
	}
	// Without access, connecting fails without a clear reason.
	if err := unix.Access(socket, unix.R_OK|unix.W_OK); err != nil {
		return &UnavailableError{Endpoint: e, Err: err, Reason: "permission denied; run podctl as root"}
	}
	return nil
}

// IsNotFound reports whether the runtime does not know the object, which counts as success for a stop or a removal.
func IsNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// IsUnimplemented reports whether the runtime is too old for the call.
func IsUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
