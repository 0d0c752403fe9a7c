package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Backend answers for an agent.
type Backend interface {
	// Status says what the agent does.
	Status(ctx context.Context) (*Status, error)
	// Pods lists the pods that the agent keeps, with their status.
	Pods(ctx context.Context) (*v1.PodList, error)
	// Metrics shows what the agent counts.
	Metrics() http.Handler
	// Reload reads the configuration and every source again.
	Reload(ctx context.Context) error
	// Look takes up the stored workloads as they are now. It returns once no pass begins for what they were.
	Look(ctx context.Context) error
}

// Serve answers on a unix socket until the context ends. What lies there from an agent that was
// killed is removed: who calls it holds the agent's lock.
func Serve(ctx context.Context, socket string, b Backend) error {
	l, err := Listen(ctx, socket)
	if err != nil {
		return fmt.Errorf("the agent's socket: %w", err)
	}
	return serve(ctx, l, handler(b))
}

// ServePublic answers on a port until the context ends: how the agent is, and its metrics. Whoever
// reaches the port may read them, so there are no details of pods beyond names.
func ServePublic(ctx context.Context, l net.Listener, b Backend) error {
	return serve(ctx, l, public(b))
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Listen makes a socket for its owner alone. Nobody else reaches it before its mode is set, as
// nobody else may enter the state directory.
func Listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(socket, 0o600)
}

// public has what anybody may read.
func public(b Backend) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }) //nolint:errcheck // who asked is gone
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if notReady(r.Context(), b) != "" {
			http.Error(w, "not ready; podctl agent status says why", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n") //nolint:errcheck // who asked is gone
	})
	mux.Handle("GET /metrics", b.Metrics())
	return mux
}

// handler has what the owner of the socket may read and do.
func handler(b Backend) http.Handler {
	rest, mux := public(b), http.NewServeMux()
	mux.Handle("/", rest)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if text := notReady(r.Context(), b); text != "" {
			http.Error(w, text, http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n") //nolint:errcheck // who asked is gone
	})
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, r *http.Request) {
		pods, err := b.Pods(r.Context())
		answer(w, pods, err)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		status, err := b.Status(r.Context())
		answer(w, status, err)
	})
	mux.HandleFunc("POST /look", func(w http.ResponseWriter, r *http.Request) { answer(w, struct{}{}, b.Look(r.Context())) })
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) { answer(w, struct{}{}, b.Reload(r.Context())) })
	return mux
}

// notReady says why the agent is not ready; nothing if it is.
func notReady(ctx context.Context, b Backend) string {
	status, err := b.Status(ctx)
	switch {
	case err != nil:
		return err.Error()
	case !status.Runtime.Answers:
		return "the runtime does not answer: " + status.Runtime.Error
	case !status.Ready:
		return "not every source has been read, or not every pod has had a pass"
	}
	return ""
}

func answer(w http.ResponseWriter, document any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // Who asked may be gone.
}
