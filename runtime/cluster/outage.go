package cluster

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// outage logs why all requests fail: once, again if the cause changes, and the end. All tasks of a node fail with the
// same error, and do not log it. Unlike apierror.Once, it stays quiet while requests fail and succeed by turns.
type outage struct {
	mu   sync.Mutex
	text string
	// lasts is set until the end. at is the time of the last line for a cause.
	lasts bool
	at    time.Time
}

// quiet is how long a cause that comes back is not logged again: every second request may fail. settle is the shortest
// time between two causes of one outage.
const quiet, settle = time.Minute, 10 * time.Second

// begin records a failed request.
func (o *outage) begin(log *slog.Logger, now time.Time, message string, err error) {
	text := apierror.Text(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	if text == o.text && (o.lasts || now.Sub(o.at) < quiet) || o.lasts && now.Sub(o.at) < settle {
		return
	}
	o.text, o.at, o.lasts = text, now, true
	log.Warn(message, "error", text)
}

// end records a request that did not fail in this way.
func (o *outage) end(log *slog.Logger, message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lasts {
		o.lasts = false
		log.Info(message)
	}
}

// logged logs a request that has failed without an answer, and returns its error as one that was logged. It leaves the
// error of a connection that breaks after use to the task, because the next request may succeed.
func (h *Health) logged(r *http.Request, err error) error {
	if utilnet.IsProbableEOF(err) {
		return err
	}
	h.silence.begin(h.log, h.now(), "the API server does not respond: pods keep running, and podctl tries again",
		&url.Error{Op: r.Method, URL: r.URL.String(), Err: h.explain(err)})
	return &apierror.LoggedError{Err: err}
}

// errUnauthorized is why an API server refuses all requests if the kubeconfig has no fault.
var errUnauthorized = errors.New("the API server does not accept the credentials of the kubeconfig (401): renew them")

// answered logs whether the API server accepts the credentials.
func (h *Health) answered(resp *http.Response) {
	h.silence.end(h.log, "the API server responds again")
	if resp.StatusCode == http.StatusUnauthorized {
		h.refusal.begin(h.log, h.now(), "the API server refuses all requests of the node: pods keep running, and "+
			"podctl tries again", h.explain(errUnauthorized))
		return
	}
	h.refusal.end(h.log, "the API server accepts requests of the node again")
}
