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
)

// Backend answers for an agent.
type Backend interface {
	// Status says what the agent does.
	Status(ctx context.Context) (*Status, error)
	// Reload reads the configuration and every source again.
	Reload(ctx context.Context) error
}

// Serve answers on a unix socket until the context ends. What lies there from an agent that was
// killed is removed: who calls it holds the agent's lock.
func Serve(ctx context.Context, socket string, b Backend) error {
	l, err := listen(ctx, socket)
	if err != nil {
		return fmt.Errorf("the agent's socket: %w", err)
	}
	server := &http.Server{Handler: handler(b), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err = server.Serve(l); errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listen makes the socket for its owner alone. Nobody else reaches it before its mode is set, as
// nobody else may enter the state directory.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(socket, 0o600)
}

func handler(b Backend) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }) //nolint:errcheck // who asked is gone
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { ready(w, r, b) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		status, err := b.Status(r.Context())
		answer(w, status, err)
	})
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) { answer(w, struct{}{}, b.Reload(r.Context())) })
	return mux
}

func ready(w http.ResponseWriter, r *http.Request, b Backend) {
	status, err := b.Status(r.Context())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case !status.Runtime.Answers:
		http.Error(w, "the runtime does not answer: "+status.Runtime.Error, http.StatusServiceUnavailable)
	case !status.Ready:
		http.Error(w, "not every source has been read, or not every pod has had a pass", http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "ok\n") //nolint:errcheck // who asked is gone
	}
}

func answer(w http.ResponseWriter, document any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // Who asked may be gone.
}
