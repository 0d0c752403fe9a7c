package mirrors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// world is an API server with a watch, and the pods of a machine.
type world struct {
	*apitest.Cluster

	t      *testing.T
	server *apitest.Server

	mu sync.Mutex
	// pods are the pods of the machine. late stops the watch at the mirror pods that it has reported.
	pods     []Pod
	late     bool
	reported []*v1.Pod
	complete bool
	foreign  error
	// refusal answers changes in place of the API server.
	refusal http.HandlerFunc
	log     apitest.Log
	manager *Manager
	stop    func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: apitest.NewCluster(), t: t, complete: true}
	w.Raw = w.refused
	w.start()
	return w
}

// refused returns the refusal; nil if there is none.
func (w *world) refused(*http.Request) http.HandlerFunc {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal
}

// start starts an agent.
func (w *world) start() {
	w.t.Helper()
	server, config := apitest.Serve(w.t, w)
	client, err := apiclient.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = server
	w.manager = New(Settings{
		Client: client.Core, Read: w.read, Random: func() float64 { return 0.5 },
		Confirm: func(context.Context) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.foreign
		},
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.manager.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-ended
	}
}

// read returns the state of this moment.
func (w *world) read(context.Context) (*State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.late {
		w.reported = nil
		for _, pod := range w.Pods() {
			if podspec.IsMirror(pod) {
				w.reported = append(w.reported, pod)
			}
		}
	}
	return &State{
		Node: node, Name: "n1", Pods: w.pods, Mirrors: w.reported, Complete: w.complete, Now: time.Now(),
	}, nil
}

// set changes the world, and waits until the manager has handled that.
func (w *world) set(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	w.manager.Wake()
	w.settle(time.Second)
}

// settle lets time pass.
func (w *world) settle(d time.Duration) {
	apitest.Sleep(d)
}

// calls checks the calls since the last one.
func (w *world) calls(when, want string) {
	w.t.Helper()
	if got := strings.Join(w.Calls(), ", "); got != want {
		w.t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// uid returns the uid of the mirror pod; empty if there is none.
func (w *world) uid() types.UID {
	if pod := w.Pod("a", "web-n1"); pod != nil {
		return pod.UID
	}
	return ""
}

// TestLife checks the requests from the first version of a pod to its end.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.pods = []Pod{from(t, "u1", "one", "")} })
		w.calls("a new pod", "POST pods")
		first := w.uid()
		w.settle(10 * time.Minute)
		w.calls("ten minutes later", "")
		w.set(func() { w.pods = []Pod{from(t, "u1", "two", "old")} })
		w.calls("the old version runs", "")
		w.set(func() { w.pods = []Pod{from(t, "u1", "two", "")} })
		w.calls("the new version runs", "DELETE pods, POST pods")
		if second := w.uid(); second == "" || second == first {
			t.Errorf("%s, before: %s", second, first)
		}
		w.End("a", "web-n1", 30)
		w.set(func() {})
		w.calls("a user deletes the mirror pod", "DELETE pods, POST pods")
		w.stop()
		w.start()
		w.set(func() {})
		w.calls("the agent starts again", "")
		w.set(func() { w.pods = []Pod{from(t, "u1", "two", "leaving")} })
		w.calls("the pod ends", "")
		w.set(func() { w.pods, w.complete = nil, false })
		w.calls("the agent starts, sources are unread", "")
		w.set(func() { w.complete = true })
		w.calls("the pod is gone", "DELETE pods")
		if w.uid() != "" || w.log.String() != "" {
			t.Error(w.uid(), w.log.String())
		}
		w.stop()
	})
}

// TestLateWatch checks that answers count until the watch has caught up, and not forever.
func TestLateWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.late, w.pods = true, []Pod{from(t, "u1", "one", "")} })
		w.set(func() {})
		w.calls("created once", "POST pods")
		w.set(func() { w.late = false })
		w.set(func() { w.late, w.pods = true, []Pod{from(t, "u1", "two", "")} })
		w.set(func() {})
		w.calls("replaced once", "DELETE pods, POST pods")
		w.settle(time.Minute)
		// The watch still has the deleted one: its uid is not that of the API server any more.
		if calls := w.Calls(); len(calls) == 0 || len(calls) > 12 {
			t.Error(calls)
		}
		w.set(func() { w.late = false })
		w.settle(2 * time.Minute)
		w.Calls()
		w.settle(10 * time.Minute)
		w.calls("the watch has caught up", "")
		w.stop()
	})
}

// TestLostAnswers checks that an answer that is lost leads to no second mirror pod, also if the agent ends with it.
func TestLostAnswers(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		for _, call := range []string{"POST pods", "DELETE pods"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.set(func() { w.pods = []Pod{from(t, "u1", "one", "")} })
				w.Disturb(apitest.Disturbance{Call: call, Nth: 1, Lose: true})
				w.set(func() { w.pods = []Pod{from(t, "u1", "two", "")} })
				if restarts {
					w.stop()
					w.start()
				}
				w.settle(2 * time.Minute)
				w.calls(call, "POST pods, DELETE pods, POST pods")
				if m := w.Pod("a", "web-n1"); m == nil || m.Spec.Containers[0].Image != "two" {
					t.Errorf("%s: %v", call, m)
				}
				w.stop()
			})
		}
	}
}

// TestRefusals checks that a refused request is reported once, and made again after 60 to 90 s.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		refusal http.HandlerFunc
		// away reports that the API server does not respond, so that its return leads to another try.
		away bool
		text string
	}{
		"no namespace":   {apitest.Refusal(404, metav1.StatusReasonNotFound, 0), false, "404"},
		"forbidden":      {apitest.Refusal(403, metav1.StatusReasonForbidden, 0), false, "403"},
		"already exists": {apitest.Refusal(409, metav1.StatusReasonAlreadyExists, 0), false, "409"},
		"a page":         {apitest.Page(404), true, ""},
		"no answer":      {apitest.Disconnect, true, ""},
		"not JSON":       {apitest.JSON(200, "{"), true, ""},
		"another object": {apitest.JSON(201, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`), true, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var tries atomic.Int32
			refusal := func(to http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				c.refusal(to, r)
			}
			w.set(func() { w.refusal, w.pods = refusal, []Pod{from(t, "u1", "one", "")} })
			w.settle(58 * time.Second)
			for range 10 {
				w.manager.Wake()
				w.settle(0)
			}
			if n := tries.Load(); n != 1 {
				t.Errorf("%s: %d tries in the first minute", name, n)
			}
			w.settle(10 * time.Minute)
			if n := tries.Load(); n < 8 || n > 11 {
				t.Errorf("%s: %d tries in 11 minutes", name, n)
			}
			if lines := strings.Count(w.log.String(), "\n"); lines != 1 || !strings.Contains(w.log.String(), c.text) {
				t.Errorf("%s: %s", name, w.log.String())
			}
			w.mu.Lock()
			w.refusal = nil
			w.mu.Unlock()
			w.manager.Retry()
			w.settle(time.Second)
			w.calls(name, "POST pods")
			w.stop()
		})
	}
}

// TestAway checks that the mirror pods are created once an API server responds that was away.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.server.Refuse(true)
		w.set(func() { w.pods = []Pod{from(t, "u1", "one", "")} })
		w.server.Refuse(false)
		w.settle(time.Second)
		w.calls("not yet", "")
		w.manager.Retry()
		w.settle(time.Second)
		w.calls("back", "POST pods")
		w.stop()
	})
}

// TestAnotherCluster checks that nothing is created or deleted in another cluster.
func TestAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.pods = []Pod{from(t, "u1", "one", "")} })
		w.Calls()
		w.set(func() { w.pods, w.foreign = []Pod{from(t, "u1", "two", "")}, errors.New("this is another cluster") })
		w.settle(10 * time.Minute)
		w.calls("another cluster", "")
		if strings.Count(w.log.String(), "another cluster") != 1 {
			t.Error(w.log.String())
		}
		w.set(func() { w.foreign = nil })
		w.manager.Retry()
		w.settle(time.Second)
		w.calls("the right one", "DELETE pods, POST pods")
		w.stop()
	})
}

// TestConflict checks that a mirror pod with the same name and another uid is not deleted.
func TestConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.pods = []Pod{from(t, "u1", "one", "")} })
		w.set(func() { w.late = true })
		// Another program has replaced the mirror pod, and the watch is late.
		replaced := mirrorOf(from(t, "u1", "two", ""), "", -1)
		replaced.UID = "another"
		w.Put(replaced)
		w.Calls()
		w.set(func() { w.pods = []Pod{from(t, "u1", "two", "")} })
		if uid := w.uid(); uid != "another" {
			t.Errorf("the mirror pod is now %q", uid)
		}
		w.set(func() { w.late = false })
		w.settle(5 * time.Minute)
		if uid := w.uid(); uid != "another" {
			t.Errorf("the mirror pod is now %q", uid)
		}
		w.stop()
	})
}

// TestFinalizers checks that an object with finalizers gets one DELETE, and a successor once it is gone.
func TestFinalizers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := from(t, "u1", "one", "")
		w.set(func() { w.pods = []Pod{p} })
		kept := w.Pod("a", "web-n1").DeepCopy()
		kept.Finalizers = []string{"example.com/keep"}
		w.Put(kept)
		w.End("a", "web-n1", 30)
		w.Disturb(apitest.Disturbance{Call: "DELETE pods", Nth: 1, After: func() {
			w.Put(kept)
			w.End("a", "web-n1", 0)
		}})
		w.Calls()
		w.set(func() {})
		w.settle(10 * time.Minute)
		w.calls("finalizers", "DELETE pods")
		w.stop()
	})
}

// TestChangedByAdmission checks that a mirror pod that admission has changed is not replaced in a loop.
func TestChangedByAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var tries atomic.Int32
		w.set(func() {
			w.pods = []Pod{from(t, "u1", "one", "")}
			w.refusal = func(to http.ResponseWriter, r *http.Request) {
				n := tries.Add(1)
				apitest.JSON(201, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"web-n1",`+
					`"uid":"%d","annotations":{"kubernetes.io/config.mirror":"x"}}}`, n))(to, r)
			}
		})
		w.settle(10 * time.Minute)
		if n := tries.Load(); n > 120 {
			t.Errorf("%d requests in ten minutes", n)
		}
		w.stop()
	})
}
