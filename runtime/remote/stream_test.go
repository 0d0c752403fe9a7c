package remote

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// serve streams the output of process to clients. The channels are those of the protocol: input, output, errors,
// status.
func serve(t *testing.T, process func(channels []io.ReadWriteCloser)) (open func() (string, error)) {
	t.Helper()
	handler := func(w http.ResponseWriter, r *http.Request) {
		write := wsstream.WriteChannel
		conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
			"v5.channel.k8s.io": {
				Binary:   true,
				Channels: []wsstream.ChannelType{wsstream.ReadChannel, write, write, write, wsstream.ReadChannel},
			},
		})
		_, channels, err := conn.Open(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		process(channels)
		_ = conn.Close() // The test is over.
	}
	server := httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(server.CloseClientConnections)
	return func() (string, error) { return server.URL, nil }
}

func writeChannel(channels []io.ReadWriteCloser, channel int, text string) {
	_, _ = channels[channel].Write([]byte(text)) // The client may have gone.
}

const success = `{"metadata":{},"status":"Success"}`

// TestOutputThatCannotBeWritten checks that lost output is reported, at the end of a process and from a process that
// never ends, which is then ended.
func TestOutputThatCannotBeWritten(t *testing.T) {
	var kept bytes.Buffer
	full := fullDisk{}
	for name, c := range map[string]struct {
		out, errs io.Writer
		channel   int
		ends      bool
		want      error
	}{
		"written":                     {&kept, io.Discard, 1, true, nil},
		"output":                      {full, io.Discard, 1, true, unix.ENOSPC},
		"errors":                      {io.Discard, full, 2, true, unix.ENOSPC},
		"of a process that continues": {full, io.Discard, 1, false, unix.ENOSPC},
		"nothing comes of the output": {full, io.Discard, 2, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			open := serve(t, func(channels []io.ReadWriteCloser) {
				writeChannel(channels, c.channel, "words")
				if c.ends {
					writeChannel(channels, 3, success)
				}
				for !c.ends && t.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
			})
			err := Carry(t.Context(), &Streams{Out: c.out, Err: c.errs}, open)
			unwritten := (*OutputError)(nil)
			if !errors.Is(err, c.want) || errors.As(err, &unwritten) != (c.want != nil) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
	if kept.String() != "words" {
		t.Errorf("what came is %q", kept.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, unix.ENOSPC }
