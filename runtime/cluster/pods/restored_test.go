package pods

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// TestRestored checks that an API server that was restored from an older backup is listed, also if it was busy or not
// there before, and that it gets no tries without pauses meanwhile.
func TestRestored(t *testing.T) {
	busy := apitest.Refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 0)
	inside := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			return
		}
		apitest.JSON(http.StatusOK, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":429,"reason":"TooManyRequests"}}`)(w, r)
	}
	for name, c := range map[string]struct {
		refuses bool
		answer  http.HandlerFunc
	}{"refused": {true, nil}, "busy": {false, busy}, "busy after the begin": {false, onlyWatches(inside)}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bubble) {
				apitest.Sleep(time.Minute) // The reflector lists after a watch that ends in less than a second.
				b.answers(c.answer)
				b.network.Refuse(c.refuses)
				b.endWatch()
				apitest.Sleep(30 * time.Minute)
				if n := b.requests() + b.network.Refusals(); n > 2000 {
					t.Errorf("%d tries in half an hour", n)
				}
				b.server.mu.Lock()
				b.pods, b.version = append(b.pods, podNamed("two", "2")), 3
				b.server.mu.Unlock()
				b.answers(nil)
				b.network.Refuse(false)
				apitest.Sleep(time.Minute)
				if got := b.state(); got != "1 2" {
					t.Errorf("afterwards %q", got)
				}
			}, podNamed("one", "1"))
		})
	}
}

// onlyWatches answers watches, and no other requests.
func onlyWatches(with http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			with(w, r)
		}
	}
}
