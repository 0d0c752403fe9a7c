package kubeletapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	streamhttp "k8s.io/streaming/pkg/httpstream"

	"github.com/podctl/podctl/podspec"
)

// executors are the ways in which clients of the API open streams.
func executors(t *testing.T, address string) map[string]remotecommand.Executor {
	t.Helper()
	config := &restclient.Config{TLSClientConfig: restclient.TLSClientConfig{Insecure: true}, BearerToken: "secret"}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	bySPDY, err := remotecommand.NewSPDYExecutor(config, "POST", u)
	if err != nil {
		t.Fatal(err)
	}
	byWebSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", address)
	if err != nil {
		t.Fatal(err)
	}
	byOldWebSocket, err := remotecommand.NewWebSocketExecutorForProtocols(config, "GET", address, "v4.channel.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{
		"SPDY":                                  bySPDY,
		"WebSocket":                             byWebSocket,
		"WebSocket without an end of the input": byOldWebSocket,
	}
}

// size is the size of a terminal that does not change.
type size struct{ sent bool }

func (s *size) Next() *remotecommand.TerminalSize {
	if s.sent {
		return nil
	}
	s.sent = true
	return &remotecommand.TerminalSize{Width: 80, Height: 24}
}

// TestExec checks commands with their streams, terminals and exit codes, over each protocol. The runtime does not get the
// client's credentials.
func TestExec(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m)
	for path, want := range map[string]struct {
		input, out, errs string
		tty              bool
		code             int
	}{
		"/exec/ns/web/app?command=cat&input=1&output=1&error=1": {input: "hello", out: "HELLO", errs: "cat in c1"},
		"/exec/ns/web/u1/app?command=cat&output=1&error=1":      {errs: "cat in c1"},
		"/exec/ns/web/app?command=exit&command=12345&error=1":   {errs: "exit in c1", code: 5},
		"/exec/ns/web/app?command=sh&output=1&error=1&tty=1":    {out: "80 x 24 ", tty: true},
		"/attach/ns/web/app?input=1&output=1&error=1":           {input: "hello", out: "HELLO", errs: "attached in c1"},
		"/attach/ns/web/u1/app?output=1&error=1":                {errs: "attached in c1"},
	} {
		for protocol, x := range executors(t, s.url+path) {
			if want.input != "" && protocol == "WebSocket without an end of the input" {
				continue
			}
			var out, errs bytes.Buffer
			options := remotecommand.StreamOptions{Tty: want.tty}
			if strings.Contains(path, "input=1") {
				options.Stdin = strings.NewReader(want.input)
			}
			if strings.Contains(path, "output=1") {
				options.Stdout = &out
			}
			if strings.Contains(path, "error=1") && !want.tty {
				options.Stderr = &errs
			}
			if want.tty {
				options.TerminalSizeQueue = &size{}
			}
			err := x.StreamWithContext(t.Context(), options)
			exit := utilexec.ExitError(nil)
			code := 0
			if errors.As(err, &exit) {
				code = exit.ExitStatus()
			}
			if out.String() != want.out || errs.String() != want.errs || code != want.code || (err != nil) != (code != 0) {
				t.Errorf("%s over %s: %q %q, code %d, %v", path, protocol, out.String(), errs.String(), code, err)
			}
		}
	}
	if leaked := slices.DeleteFunc(m.credentials, func(c string) bool { return c == "" }); len(leaked) > 0 {
		t.Errorf("the runtime gets %v", leaked)
	}
}

// TestTokensOfWebSockets checks that the runtime does not get a token that a WebSocket client offers as a protocol,
// also if the server does not check it.
func TestTokensOfWebSockets(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m) // AlwaysAllow without authentication
	const token = "base64url.bearer.authorization.k8s.io.c2VjcmV0"
	for _, protocols := range []string{
		token + ",v4.channel.k8s.io", "v4.channel.k8s.io , " + token, token + "\r\nSec-WebSocket-Protocol: v4.channel.k8s.io", token,
	} {
		conn := s.raw("GET /exec/ns/web/app?command=cat&output=1 HTTP/1.1\r\nHost: node\r\nConnection: upgrade\r\n" +
			"Upgrade: websocket\r\nOrigin: http://node\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: " + protocols + "\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := response.StatusCode == http.StatusSwitchingProtocols
		if chosen := response.Header.Get("Sec-Websocket-Protocol"); protocols != token && (!got || chosen != "v4.channel.k8s.io") {
			t.Errorf("%q: %s, %q", protocols, response.Status, chosen)
		}
		_ = response.Body.Close()
		_ = conn.Close()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.credentials) != 4 || strings.Contains(strings.Join(m.credentials, ""), "bearer") {
		t.Errorf("the runtime gets %q", m.credentials)
	}
}

// TestAttachTerminal checks that the container decides whether it has a terminal.
func TestAttachTerminal(t *testing.T) {
	d := pod("ns", "web", "u1", "api", v1.Container{Name: "app", TTY: true})
	m := newRuntime(t)
	m.run(d, "app", "c1", "")
	s := serve(t, &pods{shown: []*podspec.Desired{d}}, m)
	x := executors(t, s.url+"/attach/ns/web/app?input=1&output=1")["SPDY"]
	_ = x.StreamWithContext(t.Context(), remotecommand.StreamOptions{ // Only the request matters.
		Stdin:             strings.NewReader(""),
		Stdout:            io.Discard,
		Tty:               true,
		TerminalSizeQueue: &size{},
	})
	if !slices.Equal(m.asked, []string{"attach c1 tty=true"}) {
		t.Errorf("%v", m.asked)
	}
}

// TestPortForward checks forwarded connections over SPDY, and over SPDY within WebSocket.
func TestPortForward(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m)
	config := &restclient.Config{TLSClientConfig: restclient.TLSClientConfig{Insecure: true}}
	u, err := url.Parse(s.url + "/portForward/ns/web")
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	byWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, config)
	if err != nil {
		t.Fatal(err)
	}
	withUID := *u
	withUID.Path += "/u1"
	for name, dialer := range map[string]streamhttp.Dialer{
		"SPDY":            spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, "POST", u),
		"SPDY with a uid": spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, "GET", &withUID),
		"WebSocket":       byWebSocket,
	} {
		conn, protocol, err := dialer.Dial("portforward.k8s.io")
		if err != nil || protocol != "portforward.k8s.io" {
			t.Errorf("%s: %q %v", name, protocol, err)
			continue
		}
		for port := 80; port < 83; port++ {
			if got := exchange(t, conn, port); got != fmt.Sprintf("sandbox-of-c1:%d hello", port) {
				t.Errorf("%s: %q", name, got)
			}
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// exchange sends a word to a port and returns the answer.
func exchange(t *testing.T, conn streamhttp.Connection, port int) string {
	t.Helper()
	headers := http.Header{}
	headers.Set(v1.PortHeader, fmt.Sprint(port))
	headers.Set(v1.PortForwardRequestIDHeader, fmt.Sprint(port))
	headers.Set(v1.StreamType, v1.StreamTypeError)
	errs, err := conn.CreateStream(headers)
	if err != nil {
		t.Fatal(err)
	}
	headers.Set(v1.StreamType, v1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.WriteString(data, "hello"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(data)
	if err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(errs); err != nil || len(text) > 0 {
		t.Errorf("%q %v", text, err)
	}
	return string(got)
}

// TestRun checks commands without streams, with the command in the URL and in the body.
func TestRun(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m)
	s.expect("POST", "/run/ns/web/app?cmd=echo+a+b", http.StatusOK, "echo+a+b in c1")
	s.expect("POST", "/run/ns/web/u1/app?cmd=echo", http.StatusOK, "echo in c1")
	code, text := s.do("POST", "/run/ns/web/app", "cmd=echo%20c", "Content-Type", "application/x-www-form-urlencoded")
	if code != http.StatusOK || text != "echo+c in c1" {
		t.Errorf("with a body: %d %q", code, text)
	}
	s.expect("POST", "/run/ns/web/app?cmd=false+x", http.StatusInternalServerError, "command 'false x' exited with 1: no")
	s.expect("POST", "/run/ns/web/other?cmd=echo", http.StatusInternalServerError, `container not found ("other")`)
	s.expect("POST", "/run/ns/other/app?cmd=echo", http.StatusNotFound, "pod does not exist")
	m.fail(status.Error(codes.Unknown, "out of order"))
	s.expect("POST", "/run/ns/web/app?cmd=echo", http.StatusInternalServerError, "out of order")
}

// TestRefusedStreams checks the kubelet's errors of requests for streams.
func TestRefusedStreams(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m)
	const streams = "?command=sh&output=1"
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/exec/ns/web/app?command=sh":     {400, "you must specify at least 1 of stdin, stdout, stderr"},
		"/exec/ns/other/app" + streams:    {404, "pod does not exist"},
		"/exec/ns/web/other" + streams:    {500, `container not found ("other")`},
		"/exec/ns/web/u2/app" + streams:   {500, `container not found ("app")`},
		"/exec/ns/web/app" + streams:      {500, "Upgrade request required"},
		"/attach/ns/web/app":              {400, "you must specify at least 1 of stdin, stdout, stderr"},
		"/attach/ns/other/app" + streams:  {404, "pod does not exist"},
		"/attach/ns/web/other" + streams:  {500, "container other not found in pod web_ns"},
		"/attach/ns/web/u2/app" + streams: {500, "container app not found in pod web_ns"},
		"/attach/ns/web/app" + streams:    {500, "Upgrade request required"},
		"/portForward/ns/other":           {404, "pod does not exist"},
		"/portForward/ns/web/u2":          {404, "pod not found"},
		"/portForward/ns/web":             {500, "Upgrade request required"},
	} {
		for _, method := range []string{"GET", "POST"} {
			s.expect(method, path, want.code, want.text)
		}
	}
	if len(m.asked) > 0 {
		t.Errorf("the runtime is asked for %v", m.asked)
	}
	upgrade := func(path string, headers ...string) (int, string) {
		return s.do("GET", path, "", append([]string{"Connection", "Upgrade", "Upgrade", "websocket"}, headers...)...)
	}
	if code, text := upgrade("/portForward/ns/web"); code != 400 || text != `query parameter "port" is required` {
		t.Errorf("WebSocket without ports: %d %q", code, text)
	}
	if code, text := upgrade("/portForward/ns/web?port=0"); code != 400 || text != `port "0" must be > 0` {
		t.Errorf("port 0: %d %q", code, text)
	}
	for err, want := range map[error]int{
		status.Error(codes.NotFound, "no"): 404, status.Error(codes.ResourceExhausted, "no"): 429, status.Error(codes.Internal, "no"): 500,
	} {
		m.mu.Lock()
		m.refusal = err
		m.mu.Unlock()
		for _, path := range []string{"/exec/ns/web/app" + streams, "/attach/ns/web/app" + streams, "/portForward/ns/web?port=1"} {
			if code, text := upgrade(path); code != want || text != "no" {
				t.Errorf("%s when the runtime refuses: %d %q, not %d", path, code, text, want)
			}
		}
	}
}

// TestAbandonedStream checks that a stream ends with its client, although the process neither reads nor ends.
func TestAbandonedStream(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m, func(_ *Settings, l *limits) { l.streams = 1 })
	for protocol, x := range executors(t, s.url+"/exec/ns/web/app?command=wait&output=1") {
		ctx, leave := context.WithCancel(t.Context())
		if err := x.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: first(leave)}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", protocol, err)
		}
		if err := s.streams.total.Acquire(t.Context(), 1); err != nil { // It waits for the end of the stream.
			t.Fatal(err)
		}
		s.streams.total.Release(1)
	}
}

// TestAbandonedInput checks that a stream ends with its connection, although the process does not read its input: the
// end of the client is behind the input.
func TestAbandonedInput(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m, func(_ *Settings, l *limits) { l.streams, l.idle = 1, 200*time.Millisecond })
	x := executors(t, s.url+"/exec/ns/web/app?command=wait&input=1&output=1")["WebSocket"]
	ctx, leave := context.WithCancel(t.Context())
	options := remotecommand.StreamOptions{Stdin: strings.NewReader(strings.Repeat("x", 64<<20)), Stdout: first(leave)}
	if err := x.StreamWithContext(ctx, options); err == nil {
		t.Error("the process has ended")
	}
	if err := s.streams.total.Acquire(t.Context(), 1); err != nil { // It waits for the end of the stream.
		t.Fatal(err)
	}
}

// TestLostRuntime checks that a command does not count as successful if the runtime ends before it.
func TestLostRuntime(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m)
	x := executors(t, s.url+"/exec/ns/web/app?command=wait&output=1")["WebSocket"]
	err := x.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: first(m.stop)})
	if err == nil || !strings.Contains(err.Error(), "connection was lost") {
		t.Error(err)
	}
}

// first is an output that calls a function.
type first func()

func (f first) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// TestInvalidAddresses checks that only addresses of streams are used.
func TestInvalidAddresses(t *testing.T) {
	for _, address := range []string{"", "/exec/x", "file:///etc/passwd", "unix:///run/x.sock", "http://", "http://%zz"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://node/exec", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = forwarding(r, address); err == nil {
			t.Errorf("%q is used", address)
		}
	}
}
