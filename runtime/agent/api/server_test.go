package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// backend is an agent that is not ready.
type backend struct{}

func (backend) Status(context.Context) (*Status, error) {
	return &Status{Runtime: Runtime{Error: "details"}}, nil
}
func (backend) Reload(context.Context) error { return errors.New("reloaded") }
func (backend) Look(context.Context) error   { return errors.New("looked") }
func (backend) Pods(context.Context) (*v1.PodList, error) {
	return &v1.PodList{Items: make([]v1.Pod, 1)}, nil
}

func (backend) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "counted 1\n") }) //nolint:errcheck // a recorder
}

// TestWhoMayAskWhat: the owner of the socket may ask everything; a port shows how the agent is, its
// metrics, and no details.
func TestWhoMayAskWhat(t *testing.T) {
	for _, c := range []struct {
		method, path string
		own, port    int
		text         string
	}{
		{"GET", "/healthz", 200, 200, "ok"},
		{"GET", "/metrics", 200, 200, "counted 1"},
		{"GET", "/readyz", 503, 503, "details"},
		{"GET", "/status", 200, 404, "details"},
		{"GET", "/pods", 200, 404, `"items":[`},
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
