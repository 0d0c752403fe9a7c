package cluster

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// State is whether the API server responds.
type State struct {
	// Responds is set if the last request was answered.
	Responds bool
	// Since is the time of the last change of Responds. It is zero before the first result.
	Since time.Time
	// Err is the last error, if the API server does not respond.
	Err error
}

// Health records and logs whether the API server responds. An answer that refuses the request is a response as well. It
// is safe for concurrent use.
type Health struct {
	now func() time.Time
	log *slog.Logger
	// explain returns the fault of the kubeconfig that causes an error of all requests, or the error itself.
	explain func(error) error

	// silence lasts while requests get no answer, refusal while the API server refuses the credentials.
	silence, refusal outage

	mu     sync.Mutex
	state  State
	notify []func()
}

// State returns the state.
func (h *Health) State() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// OnReturn calls a function, which must not block, each time the API server responds again.
func (h *Health) OnReturn(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notify = append(h.notify, do)
}

// watch records the results of a transport's requests.
func (h *Health) watch(next http.RoundTripper) http.RoundTripper {
	return &watched{next: next, health: h}
}

type watched struct {
	next   http.RoundTripper
	health *Health
}

// RoundTrip makes a request and records its result.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err == nil {
		limitDelay(resp.Header)
		err = checkPage(resp)
	}
	switch {
	case err != nil && r.Context().Err() != nil:
		// The caller gave up. That does not concern the API server.
	case err != nil:
		w.health.record(err)
		err = w.health.logged(r, err)
	case resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable ||
		resp.StatusCode == http.StatusGatewayTimeout:
		// A load balancer answers although no API server does.
		w.health.record(fmt.Errorf("%s %s: %s", r.Method, r.URL.Host, resp.Status))
	default:
		w.health.record(nil)
		w.health.answered(resp)
	}
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Get("watch") != "true" {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxAnswer}
	}
	return resp, nil
}

// checkPage returns an error, and closes the body, if the answer is a page of a proxy or of another server. client-go
// would take a page with the code 404 or 409 for an answer about the object. API servers use text only for errors.
func checkPage(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if !strings.HasPrefix(kind, "text/") || kind == "text/plain" && resp.StatusCode >= http.StatusBadRequest {
		return nil
	}
	_ = resp.Body.Close()
	return &apierror.PageError{Type: kind, Status: resp.Status}
}

// limitDelay limits the delay that a server asks for. client-go would wait for any time, and without a message.
func limitDelay(h http.Header) {
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil && seconds > apierror.DelayMax {
		h.Set("Retry-After", strconv.Itoa(apierror.DelayMax))
	}
}

// maxAnswer limits the size of an answer in bytes. The largest is the list of a node's pods: an object has at most
// 1.5 MiB (etcd's limit). A watch has no end, but its events have the same limit, and listwatch limits the objects that
// it begins with.
const maxAnswer = 256 << 20

// limitedBody is the body of an answer. Reading more than its limit is an error.
type limitedBody struct {
	io.ReadCloser

	left int64
}

// Read reads a part of the body.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the answer of the API server is larger than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// WrappedRoundTripper returns the wrapped transport. client-go finds the dialer of streams by it.
func (w *watched) WrappedRoundTripper() http.RoundTripper { return w.next }

var _ utilnet.RoundTripperWrapper = (*watched)(nil)

func (h *Health) record(err error) {
	h.mu.Lock()
	responds := err == nil
	returned := responds && !h.state.Responds
	if h.state.Since.IsZero() || responds != h.state.Responds {
		h.state.Since = h.now()
	}
	h.state.Responds, h.state.Err = responds, err
	notify := h.notify
	h.mu.Unlock()
	if returned {
		for _, do := range notify {
			do()
		}
	}
}

// errUnknown is the error of a state before the first request.
var errUnknown = errors.New("no request has been made")

// Check returns nil if the API server responds, and the reason otherwise.
func (h *Health) Check() error {
	switch s := h.State(); {
	case s.Responds:
		return nil
	case s.Err != nil:
		return s.Err
	}
	return errUnknown
}
