package kubeletapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	protocol "k8s.io/apimachinery/pkg/util/remotecommand"
	client "k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/podctl/podctl/runtime/remote"
)

// statusTime is how long a client may take to read the status of a process (as that of the API server).
const statusTime = 10 * time.Second

// translate carries the streams of version 5 of the WebSocket protocol to the runtime's address with SPDY (kubelet:
// getExec, whose translator links client-go's clientset). The library answers a request that it cannot upgrade.
func translate(w http.ResponseWriter, r *http.Request, to *url.URL, o *remotecommand.Options) {
	conn := newConn(o)
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // the streams have ended
	// An empty message notifies the client that the connection is established.
	if _, err = streams[firstOutput(o)].Write(nil); err != nil {
		return
	}
	options := client.StreamOptions{Tty: o.TTY}
	if o.Stdin {
		options.Stdin = streams[protocol.StreamStdIn]
	}
	if o.Stdout {
		options.Stdout = streams[protocol.StreamStdOut]
	}
	if o.Stderr {
		options.Stderr = streams[protocol.StreamStdErr]
	}
	if o.TTY {
		options.TerminalSizeQueue = readSizes(r.Context(), streams[protocol.StreamResize])
	}
	text, err := json.Marshal(endStatus(carry(r.Context(), to, options)))
	if err != nil {
		return
	}
	conn.SetWriteDeadline(statusTime)
	streams[protocol.StreamErr].Write(text) //nolint:errcheck // the client is gone
}

// newConn returns a connection with the streams of version 5.
func newConn(o *remotecommand.Options) *wsstream.Conn {
	return wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		protocol.StreamProtocolV5Name: {Binary: true, Channels: channelsOf(o)},
	})
}

// channelsOf returns the directions of the streams.
func channelsOf(o *remotecommand.Options) []wsstream.ChannelType {
	channels := make([]wsstream.ChannelType, protocol.StreamResize+1) // By default a channel is ignored.
	if o.Stdin {
		channels[protocol.StreamStdIn] = wsstream.ReadChannel
	}
	if o.Stdout {
		channels[protocol.StreamStdOut] = wsstream.WriteChannel
	}
	if o.Stderr {
		channels[protocol.StreamStdErr] = wsstream.WriteChannel
	}
	channels[protocol.StreamErr] = wsstream.WriteChannel
	channels[protocol.StreamResize] = wsstream.ReadChannel
	return channels
}

// firstOutput returns the lowest stream that the server writes.
func firstOutput(o *remotecommand.Options) int {
	switch {
	case o.Stdout:
		return protocol.StreamStdOut
	case o.Stderr:
		return protocol.StreamStdErr
	}
	return protocol.StreamErr
}

// carry carries streams to the runtime's address until the process ends, and returns how it ended.
func carry(ctx context.Context, to *url.URL, o client.StreamOptions) error {
	executor, err := remote.SPDY(to)
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, o)
}

// endStatus returns the status that the client gets for the end of a process.
func endStatus(err error) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	if exit := (exec.CodeExitError{}); errors.As(err, &exit) && exit.Exited() {
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: protocol.NonZeroExitCodeReason,
			Message: "command terminated with non-zero exit code: " + exit.Error(),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: protocol.ExitCodeCauseType, Message: strconv.Itoa(exit.ExitStatus())},
			}},
		}
	}
	if status := (*apierrors.StatusError)(nil); errors.As(err, &status) {
		return status.Status()
	}
	return apierrors.NewInternalError(err).Status()
}

// sizes are the sizes of a terminal. The channel is closed at their end.
type sizes chan client.TerminalSize

// Next returns the next size, or nil at the end.
func (s sizes) Next() *client.TerminalSize {
	if size, more := <-s; more {
		return &size
	}
	return nil
}

// readSizes reads the sizes of a terminal until the stream or the request ends.
func readSizes(ctx context.Context, from io.Reader) sizes {
	s := make(sizes)
	go func() {
		defer close(s)
		for decoder := json.NewDecoder(from); ; {
			var size client.TerminalSize
			if decoder.Decode(&size) != nil {
				return
			}
			select {
			case s <- size:
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}
