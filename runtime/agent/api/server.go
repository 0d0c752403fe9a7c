package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent/metrics"
	"github.com/podctl/podctl/runtime/model"
)

// Backend answers for an agent.
type Backend interface {
	// Healthy returns an error if the agent's loop is stalled.
	Healthy() error
	// Status returns the status of the agent.
	Status(ctx context.Context) (*Status, error)
	// Pods returns the pods that the agent keeps, with their status.
	Pods(ctx context.Context) (*v1.PodList, error)
	// ClusterPods returns the pods of the node in the API server.
	ClusterPods(ctx context.Context) (*ClusterPods, error)
	// Metrics serves the metrics of the agent.
	Metrics() *metrics.Metrics
	// Devices returns the manager of devices.
	Devices() model.DeviceManager
	// Reload reads the configuration and every source again. It waits only briefly for a source.
	Reload(ctx context.Context) (*Reloaded, error)
	// ReadWorkloads reads the stored workloads again. It returns once no pass begins for their earlier version.
	ReadWorkloads(ctx context.Context) error
}

// The limits of a connection. A request is one line and some headers, and an answer on the port takes moments. The
// owner's requests may take as long as they need: a reload reads every source.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = time.Minute
	idleTimeout  = 5 * time.Minute
	maxHeader    = 16 << 10
)

// Serve serves a unix socket until the context ends. It removes the socket that a killed agent left. The caller must
// hold the agent's lock.
func Serve(ctx context.Context, socket string, b Backend) error {
	l, err := Listen(ctx, socket)
	if err != nil {
		return fmt.Errorf("the agent's socket: %w", err)
	}
	return serve(ctx, l, ownConnections, &http.Server{Handler: handler(b)})
}

// ServePublic serves the health and the metrics of the agent on a port until the context ends. Everyone who reaches the
// port may read them, so they contain no details of pods beyond names. name is the host name under which the port was
// opened, if it is not an address.
func ServePublic(ctx context.Context, l net.Listener, name string, b Backend) error {
	server := &http.Server{Handler: ForHosts(HostNames(name), public(b)), WriteTimeout: writeTimeout}
	return serve(ctx, l, maxConnections, server)
}

func serve(ctx context.Context, l net.Listener, connections int, server *http.Server) error {
	server.Handler = withoutBody(server.Handler)
	server.ReadTimeout, server.IdleTimeout, server.MaxHeaderBytes = readTimeout, idleTimeout, maxHeader
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(&bounded{Listener: l, max: connections}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// withoutBody refuses requests with a body. No request needs one, and reading it would take as long as the client
// likes.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// Otherwise the server would read the rest of the body before it answers.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			w.Header().Set("Connection", "close")
			http.Error(w, "a request must not have a body", http.StatusRequestEntityTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// HostNames returns the names of this machine that are allowed in the Host header of a request, beside addresses.
func HostNames(name string) []string {
	names := []string{"localhost"}
	if name != "" {
		names = append(names, name)
	}
	if own, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(own, ".")
		names = append(names, own, short)
	}
	return names
}

// ForHosts serves only requests for an address or one of the names, or without a Host header, because load balancers
// check with HTTP/1.0. This prevents DNS rebinding: a page in a browser cannot make such a request to a server other
// than its own, whatever its name resolves to.
func ForHosts(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		known := func(name string) bool { return strings.EqualFold(strings.TrimSuffix(host, "."), name) }
		if err != nil && host != "" && !slices.ContainsFunc(names, known) {
			http.Error(w, "unknown host name: use an address or a name of this machine", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Listen creates a socket that only its owner can use, and its directory. Other users cannot reach the socket before
// its mode is set, because they may not enter the state directory.
func Listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(socket, 0o600)
}

// public serves what everyone may read.
func public(b Backend) *http.ServeMux {
	mux, ready := http.NewServeMux(), &readiness{of: b}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := b.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "ok\n") //nolint:errcheck // the client is gone
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		why := ready.text(r.Context())
		if why != "" {
			why = "not ready; podctl agent status shows why"
		}
		answerReady(w, why)
	})
	mux.Handle("GET /metrics", b.Metrics().Handler())
	return mux
}

// handler serves what the owner of the socket may read and do.
func handler(b Backend) http.Handler {
	rest, mux := public(b), http.NewServeMux()
	mux.Handle("/", rest)
	serveDevices(mux, b)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answerReady(w, notReady(r.Context(), b))
	})
	for request, ask := range map[string]func(context.Context) (any, error){
		"GET /pods":         func(ctx context.Context) (any, error) { return b.Pods(ctx) },
		"GET /cluster/pods": func(ctx context.Context) (any, error) { return b.ClusterPods(ctx) },
		"GET /status":       func(ctx context.Context) (any, error) { return b.Status(ctx) },
		"POST /look":        func(ctx context.Context) (any, error) { return struct{}{}, b.ReadWorkloads(ctx) },
		"POST /reload":      func(ctx context.Context) (any, error) { return b.Reload(ctx) },
	} {
		mux.HandleFunc(request, func(w http.ResponseWriter, r *http.Request) {
			document, err := ask(r.Context())
			answer(w, document, err)
		})
	}
	return mux
}

// answer sends the result of a request, or its error. The client may be gone.
func answer(w http.ResponseWriter, document any, err error) {
	switch {
	case errors.Is(err, model.ErrDevicesTaken):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}
}

// answerReady reports that the agent is ready, or why it is not.
func answerReady(w http.ResponseWriter, why string) {
	if why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ok\n") //nolint:errcheck // the client is gone
}

// readiness queries the agent at most once a second, so that requests on the port do not keep its loop busy.
type readiness struct {
	of Backend

	asks sync.Mutex
	at   time.Time
	last atomic.Pointer[string]
}

// text returns the reason why the agent is not ready, or "". While one request queries the agent, others get the last
// answer without waiting.
func (r *readiness) text(ctx context.Context) string {
	if r.asks.TryLock() {
		defer r.asks.Unlock()
		if last := r.last.Load(); last == nil || time.Since(r.at) >= time.Second {
			// A client that closes its connection must not cancel the query, because others use its answer.
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
			defer cancel()
			text := notReady(asking, r.of)
			r.at = time.Now()
			r.last.Store(&text)
		}
	}
	if last := r.last.Load(); last != nil {
		return *last
	}
	return "the agent has not answered yet"
}

// notReady returns the reason why the agent is not ready. It is empty if the agent is ready.
func notReady(ctx context.Context, b Backend) string {
	status, err := b.Status(ctx)
	switch {
	case err != nil:
		return err.Error()
	case !status.Runtime.Answers:
		return "the runtime does not answer: " + status.Runtime.Error
	case !status.Ready:
		return "some sources have not been read, or some pods have not had a pass"
	}
	return ""
}
