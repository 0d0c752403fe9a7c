package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent/metrics"
	"github.com/podctl/podctl/runtime/model"
)

// backend is an agent that is not ready.
type backend struct{}

func (backend) Status(context.Context) (*Status, error) {
	return &Status{Runtime: Runtime{Error: "details"}}, nil
}
func (backend) Devices() model.DeviceManager              { return nil }
func (backend) Healthy() error                            { return nil }
func (backend) Reload(context.Context) (*Reloaded, error) { return nil, errors.New("reloaded") }
func (backend) ClusterPods(context.Context) (*ClusterPods, error) {
	return nil, errors.New("no cluster")
}
func (backend) ReadWorkloads(context.Context) error { return errors.New("looked") }
func (backend) Pods(context.Context) (*v1.PodList, error) {
	return &v1.PodList{Items: make([]v1.Pod, 1)}, nil
}

func (backend) Metrics() *metrics.Metrics {
	return metrics.New(func(context.Context) (int, map[string]int, error) { return 1, nil, nil })
}

// TestSocketPermissions checks that the owner of the socket may use all requests, and that a port serves only health
// and metrics without details.
func TestSocketPermissions(t *testing.T) {
	for _, c := range []struct {
		method, path string
		own, port    int
		text         string
	}{
		{"GET", "/healthz", 200, 200, "ok"},
		{"GET", "/metrics", 200, 200, "kubelet_running_pods 1"},
		{"GET", "/readyz", 503, 503, "details"},
		{"GET", "/status", 200, 404, "details"},
		{"GET", "/pods", 200, 404, `"items":[`},
		{"GET", "/cluster/pods", 500, 404, "no cluster"},
		{"POST", "/reload", 500, 404, "reloaded"},
		{"POST", "/metrics", 405, 405, ""},
	} {
		w, own := httptest.NewRecorder(), httptest.NewRecorder()
		public(backend{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody))
		handler(backend{}).ServeHTTP(own, httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody))
		if own.Code != c.own || w.Code != c.port {
			t.Errorf("%s %s: the socket answers %d, the port %d; want %d and %d", c.method, c.path, own.Code, w.Code, c.own, c.port)
		}
		if !strings.Contains(own.Body.String(), c.text) || strings.Contains(w.Body.String(), "details") {
			t.Errorf("%s %s: the socket says %q, the port %q", c.method, c.path, own.Body, w.Body)
		}
	}
}

// stalled is an agent whose loop is stalled.
type stalled struct{ backend }

func (stalled) Healthy() error { return errors.New("the loop is stalled") }

// TestHealth checks that the health check fails when the loop is stalled.
func TestHealth(t *testing.T) {
	w := httptest.NewRecorder()
	public(stalled{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/healthz", http.NoBody))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "stalled") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// counting counts its calls.
type counting struct {
	backend
	times *int
}

func (c counting) Status(ctx context.Context) (*Status, error) {
	*c.times++
	return c.backend.Status(ctx)
}

// TestReadinessQueriesAreCached checks that the agent is queried rarely, however many requests there are.
func TestReadinessQueriesAreCached(t *testing.T) {
	times := 0
	r := &readiness{of: counting{times: &times}}
	for range 1000 {
		if r.text(t.Context()) == "" {
			t.Fatal("the agent counts as ready")
		}
	}
	r.at = r.at.Add(-time.Second)
	before := times
	if r.text(t.Context()); times != before+1 || before > 100 {
		t.Errorf("asked %d times, then %d", before, times)
	}
}

// TestReadinessOfAStalledLoop checks that only one request waits for a stalled loop.
func TestReadinessOfAStalledLoop(t *testing.T) {
	r := &readiness{of: backend{}}
	r.asks.Lock()
	if text := r.text(t.Context()); text == "" {
		t.Error("an agent that has not answered counts as ready")
	}
	r.asks.Unlock()
	before := r.text(t.Context())
	r.asks.Lock()
	if text := r.text(t.Context()); text != before {
		t.Errorf("%q, then %q", before, text)
	}
}

// served returns the address of a public port.
func served(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServePublic(ctx, l, "metrics.test", backend{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestHosts checks that a request must be for an address or a name of this machine.
func TestHosts(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	at := served(t)
	for host, want := range map[string]int{
		at:               200,
		"127.0.0.1":      200,
		"[::1]:9187":     200,
		"192.0.2.7:80":   200,
		"localhost:9187": 200,
		"LOCALHOST":      200,
		own:              200,
		"metrics.test:1": 200,
		"metrics.test.":  200,
		"evil.test":      421, "localhost.evil.test": 421, "127.0.0.1.evil.test": 421, own + ".evil.test": 421, "evil.test:9187": 421,
	} {
		for _, path := range []string{"/healthz", "/metrics", "/readyz"} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+at+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if refused := answer.StatusCode == 421; refused != (want == 421) {
				t.Errorf("%s for the host %s: %s", path, host, answer.Status)
			}
		}
	}
}

// TestRequestsWithoutAHost checks that such requests are answered: a browser always sends a host, and the health checks
// of load balancers may use HTTP/1.0.
func TestRequestsWithoutAHost(t *testing.T) {
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", served(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to write
	if _, err = conn.Write([]byte("GET /healthz HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 200") {
		t.Errorf("%s, %v", answer, err)
	}
}

// TestBodiesAreRefused checks that a request with a body is refused at once on the port and on the socket, without
// waiting for its end.
func TestBodiesAreRefused(t *testing.T) {
	at := served(t)
	for _, request := range []string{
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
		"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = conn.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 413 ") {
			t.Errorf("%q is answered by %q: %v", request, text, err)
		}
		_ = conn.Close()
	}
	w := httptest.NewRecorder()
	withoutBody(handler(backend{})).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/reload", strings.NewReader("x")))
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("the socket takes a body: %d", w.Code)
	}
}

// TestConnectionsAreBounded checks that the newest connection is answered and few are open, however many there are.
func TestConnectionsAreBounded(t *testing.T) {
	at := served(t)
	var slow []net.Conn
	for range 5 * maxConnections {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the server may have closed it
		if _, err := conn.Write([]byte("GET /metrics HTTP/1.1\r\nHost: localhost\r\n")); err != nil && len(slow) < maxConnections {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	answer, err := http.Get("http://" + at + "/healthz") //nolint:noctx // it is answered
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}
	// The oldest are closed without an answer.
	for _, conn := range slow[:4*maxConnections] {
		if text, _ := io.ReadAll(conn); len(text) != 0 {
			t.Errorf("answered by %q", text)
		}
	}
}
