package statuses

import (
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// slow delays the answer of the API server, which does not handle a request whose client has given up.
func slow(by time.Duration) fault {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-r.Context().Done():
			return true
		case <-time.After(by):
			return false
		}
	}
}

// TestSlowServer checks that an API server that needs minutes for each answer gets the status and the final DELETE.
func TestSlowServer(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.set(func() { c.broken = slow(5 * time.Minute) })
		c.becomes(running)
		c.passes(20 * time.Minute)
		if s := c.status(); s.Phase != v1.PodRunning {
			t.Errorf("the API has %q after %v", s.Phase, c.log())
		}
		c.deleted()
		c.is("{phase: Failed}", reclaimed)
		c.Mark("u1")
		c.passes(time.Hour)
		if pod := c.pods["default/web"]; pod != nil {
			t.Errorf("the pod is still there after %v", c.log())
		}
	})
}

// TestDisagreement checks that a conflict that does not end is reported once, that each comparison tries again, and
// that the status arrives afterwards.
func TestDisagreement(t *testing.T) {
	for name, f := range map[string]fault{
		"conflict":  refuses(409, metav1.StatusReasonConflict, ""),
		"gone":      refuses(410, metav1.StatusReasonGone, ""),
		"not found": refuses(404, metav1.StatusReasonNotFound, ""),
		"a page":    html(404),
	} {
		inBubble(t, func(c *cluster) {
			c.set(func() { c.broken = f })
			c.becomes(running)
			c.passes(10 * time.Minute)
			if n := len(c.log()); n < 20 || n > 70 {
				t.Errorf("%s: %d requests in ten minutes", name, n)
			}
			if lines := strings.Count(c.logs.String(), "\n"); lines != 1 {
				t.Errorf("%s: the log has %d lines: %s", name, lines, c.logs)
			}
			c.set(func() { c.broken = nil })
			c.passes(time.Minute)
			if s := c.status(); s.Phase != v1.PodRunning {
				t.Errorf("%s: afterwards the API has %q", name, s.Phase)
			}
		})
	}
}
