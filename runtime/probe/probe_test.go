package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// patient is the timeout in seconds of probes that get an answer, however slow the machine is.
const patient = 3600

func httpGet(port int, path string) *v1.Probe {
	return &v1.Probe{TimeoutSeconds: patient, ProbeHandler: v1.ProbeHandler{
		HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromInt(port), Scheme: v1.URISchemeHTTP},
	}}
}

func local(c *v1.Container) Target {
	return Target{ContainerID: "c1", PodIP: "127.0.0.1", Container: c}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(address, "http://"), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// freePort returns a port without a listener.
func freePort(t *testing.T) int {
	t.Helper()
	// A socket that is bound and does not listen keeps the port from other programs.
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	if err = unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*unix.SockaddrInet4).Port
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/code/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.PathValue("code"))
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, "SECRET BODY")
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	})
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/code/200", http.StatusFound) })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, strings.Repeat("x", 1<<20)) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	cases := map[string]struct {
		path        string
		want        Verdict
		wantMessage string
	}{
		"200":                     {"/code/200", Success, ""},
		"399":                     {"/code/399", Warning, "redirected"},
		"400":                     {"/code/400", Failure, "statuscode: 400"},
		"500":                     {"/code/500", Failure, "statuscode: 500"},
		"a redirect here":         {"/here", Success, ""},
		"a redirect elsewhere":    {"/away", Warning, "redirected"},
		"a huge body":             {"/big", Success, ""},
		"slower than its timeout": {"/slow", Failure, "deadline exceeded"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			runner := Runner{Clean: func(text string) string { return strings.ReplaceAll(text, "SECRET", "(hidden)") }}
			p := httpGet(portOf(t, server.URL), c.path)
			if c.path == "/slow" {
				p.TimeoutSeconds = 1
			}
			r := runner.Run(t.Context(), p, local(&v1.Container{}))
			if body := "Probe terminated redirects, Response body: (hidden) BODY"; name == "399" && r.Output != body {
				t.Errorf("output %q, want %q", r.Output, body)
			}
			if r.Verdict != c.want || !strings.Contains(r.Message, c.wantMessage) || strings.Contains(r.Message, "SECRET") {
				t.Errorf("%s %q", r.Verdict, r.Message)
			}
		})
	}
}

func TestHTTPRequest(t *testing.T) {
	got := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r }))
	defer server.Close()
	c := &v1.Container{Ports: []v1.ContainerPort{{Name: "web", ContainerPort: int32(portOf(t, server.URL))}}}
	p := httpGet(0, "/path?q=1")
	p.HTTPGet.Port = intstr.FromString("web")
	p.HTTPGet.HTTPHeaders = []v1.HTTPHeader{{Name: "Host", Value: "name.test"}, {Name: "X-A", Value: "b"}}
	if r := (Runner{}).Run(t.Context(), p, local(c)); r.Verdict != Success {
		t.Fatalf("%s %s", r.Verdict, r.Message)
	}
	r := <-got
	if r.UserAgent() != "kube-probe/1.36" || r.Host != "name.test" ||
		r.Header.Get("X-A") != "b" || r.URL.RawQuery != "q=1" || r.Header.Get("Accept") != "*/*" {
		t.Errorf("%+v", r)
	}
}

func TestHTTPSIsNotVerified(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	p := httpGet(portOf(t, server.URL), "/")
	p.HTTPGet.Scheme = v1.URISchemeHTTPS
	if r := (Runner{}).Run(t.Context(), p, local(&v1.Container{})); r.Verdict != Success {
		t.Errorf("%s %s", r.Verdict, r.Message)
	}
}

func TestRefusedPortsFail(t *testing.T) {
	port := freePort(t)
	probes := map[string]v1.ProbeHandler{
		"http": {HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt(port), Scheme: v1.URISchemeHTTP}},
		"tcp":  {TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(port)}},
		"grpc": {GRPC: &v1.GRPCAction{Port: int32(port)}},
	}
	for name, handler := range probes {
		t.Run(name, func(t *testing.T) {
			r := Runner{}.Run(t.Context(), &v1.Probe{TimeoutSeconds: 1, ProbeHandler: handler}, local(&v1.Container{}))
			if r.Verdict != Failure || r.Message == "" || r.Attempts != 1 {
				t.Errorf("%s %q, %d attempts", r.Verdict, r.Message, r.Attempts)
			}
		})
	}
}

func TestUnknownPortNameIsUnknown(t *testing.T) {
	p := httpGet(0, "/")
	p.HTTPGet.Port = intstr.FromString("absent")
	if r := (Runner{}).Run(t.Context(), p, local(&v1.Container{})); r.Verdict != Unknown || r.Message == "" {
		t.Errorf("%s %q", r.Verdict, r.Message)
	}
}

// TestWithoutAnAddress checks that a server of the node on the same port answers neither probes nor hooks of a pod
// without an address. A handler that names its host needs no address.
func TestWithoutAnAddress(t *testing.T) {
	requests := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests = true }))
	defer server.Close()
	port, nowhere := portOf(t, server.URL), Target{ContainerID: "c1", Container: &v1.Container{}}
	get := &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt(port), Scheme: v1.URISchemeHTTP}
	for name, handler := range map[string]v1.ProbeHandler{
		"http": {HTTPGet: get},
		"tcp":  {TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(port)}},
		"grpc": {GRPC: &v1.GRPCAction{Port: int32(port)}},
	} {
		r := Runner{}.Run(t.Context(), &v1.Probe{TimeoutSeconds: patient, ProbeHandler: handler}, nowhere)
		if r.Verdict != Failure || !strings.Contains(r.Message, "no address") {
			t.Errorf("%s: %s %q", name, r.Verdict, r.Message)
		}
	}
	if err := HTTPHook(t.Context(), get, nowhere); !errors.Is(err, errNoAddress) || requests {
		t.Errorf("a hook: %v, asked %t", err, requests)
	}
	get.Host = "127.0.0.1"
	tcp := &v1.Probe{
		TimeoutSeconds: patient,
		ProbeHandler:   v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Host: "127.0.0.1", Port: intstr.FromInt(port)}},
	}
	if r := (Runner{}).Run(t.Context(), tcp, nowhere); r.Verdict != Success {
		t.Errorf("tcp with a host: %s %q", r.Verdict, r.Message)
	}
	if err := HTTPHook(t.Context(), get, nowhere); err != nil || !requests {
		t.Errorf("a hook with a host: %v, asked %t", err, requests)
	}
}

func TestGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed with the server
	if err != nil {
		t.Fatal(err)
	}
	server, service := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(server, service)
	go server.Serve(l) //nolint:errcheck // ends with Stop
	defer server.Stop()
	p := &v1.Probe{TimeoutSeconds: patient, ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(portOf(t, l.Addr().String()))}}}
	if r := (Runner{}).Run(t.Context(), p, local(&v1.Container{})); r.Verdict != Success {
		t.Errorf("serving: %s %s", r.Verdict, r.Message)
	}
	service.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	if r := (Runner{}).Run(t.Context(), p, local(&v1.Container{})); r.Verdict != Failure || !strings.Contains(r.Message, "NOT_SERVING") {
		t.Errorf("not serving: %s %s", r.Verdict, r.Message)
	}
}

func TestExec(t *testing.T) {
	cases := map[string]struct {
		result      ExecResult
		err         error
		want        Verdict
		wantMessage string
		tries       int
	}{
		"zero": {ExecResult{}, nil, Success, "", 1},
		"one": {
			ExecResult{Stdout: []byte("out\n"), Stderr: []byte("err\x1b[31m"), ExitCode: 1},
			nil,
			Failure,
			"exit code 1: out err[31m",
			1,
		},
		"a time-out": {ExecResult{}, status.Error(codes.DeadlineExceeded, "x"), Failure, "command timed out", 1},
		"an error":   {ExecResult{}, errors.New("no such container"), Unknown, "no such container", 3},
		"a flood":    {ExecResult{Stdout: []byte(strings.Repeat("x", 1<<20)), ExitCode: 1}, nil, Failure, "…", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := Runner{Exec: func(context.Context, string, []string, time.Duration) (ExecResult, error) { return c.result, c.err }}
			p := &v1.Probe{TimeoutSeconds: 1, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"a"}}}}
			got := r.Run(t.Context(), p, local(&v1.Container{}))
			if got.Verdict != c.want || !strings.Contains(got.Message, c.wantMessage) || got.Attempts != c.tries || len(got.Message) > 600 {
				t.Errorf("%s %q, %d attempts", got.Verdict, got.Message, got.Attempts)
			}
			if strings.Contains(got.Output, "exit code") || (got.Output == "") != (got.Message == "") {
				t.Errorf("a kubelet says %q", got.Output)
			}
		})
	}
}

func TestExecExpandsLiteralValuesOnly(t *testing.T) {
	c := &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", ValueFrom: &v1.EnvVarSource{}}}}
	var got []string
	r := Runner{Exec: func(_ context.Context, _ string, command []string, _ time.Duration) (ExecResult, error) {
		got = command
		return ExecResult{}, nil
	}}
	p := &v1.Probe{
		TimeoutSeconds: 1,
		ProbeHandler:   v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"$(A)", "$(B)", "$(C)", "$$(A)"}}},
	}
	if r.Run(t.Context(), p, local(c)); fmt.Sprint(got) != "[1  $(C) $(A)]" {
		t.Errorf("%q", got)
	}
}

// TestACommandThatGrowsIsNotRun checks that a command that is too long for Linux is not built, and that the message
// does not contain the value.
func TestACommandThatGrowsIsNotRun(t *testing.T) {
	c := &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: strings.Repeat("s3cret", 10_000)}}}
	r := Runner{Exec: func(context.Context, string, []string, time.Duration) (ExecResult, error) {
		t.Error("it is run")
		return ExecResult{}, nil
	}}
	p := &v1.Probe{
		TimeoutSeconds: 1,
		ProbeHandler:   v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"a", strings.Repeat("$(A)", 100)}}},
	}
	got := r.Run(t.Context(), p, local(c))
	if got.Verdict == Success ||
		!strings.Contains(got.Message, "exec.command[1]: is too long once $(NAME) is expanded in it") ||
		strings.Contains(got.Message, "s3cret") {
		t.Errorf("%s %.300q", got.Verdict, got.Message)
	}
}

func TestHookAcceptsAnyStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	action := &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt(portOf(t, server.URL)), Scheme: v1.URISchemeHTTPS}
	if err := HTTPHook(t.Context(), action, local(&v1.Container{})); err != nil {
		t.Errorf("an answer, even over plain http, is a success: %v", err)
	}
	action.Port = intstr.FromInt(freePort(t))
	if err := HTTPHook(t.Context(), action, local(&v1.Container{})); err == nil {
		t.Error("a refused connection is not an answer")
	}
}
