package statuses

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// machine has the pods of an agent with the statuses that the test sets.
type machine struct {
	mu    sync.Mutex
	shown map[types.UID]Shown
	state map[types.UID]v1.PodStatus
	err   error
	lists int
	// slow is the time that a list takes.
	slow time.Duration
}

func (m *machine) Shown(context.Context) (list []Shown, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shown {
		list = append(list, s)
	}
	return list, nil
}

func (m *machine) List(_ context.Context, pods []*podspec.Desired) (list []*v1.Pod, err error) {
	time.Sleep(m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lists++
	for _, d := range pods {
		pod := d.Pod.DeepCopy()
		pod.Status = *new(m.state[pod.UID]).DeepCopy()
		if m.err != nil {
			pod.Status = v1.PodStatus{Phase: v1.PodUnknown, Message: m.err.Error()}
		}
		list = append(list, pod)
	}
	return list, m.err
}

// cluster is a machine with a manager and an API server.
type cluster struct {
	*apiServer
	*Manager

	t    *testing.T
	here *machine
	logs *apitest.Log
	stop context.CancelFunc
	done chan struct{}
	// other is the error of Confirm.
	other atomic.Pointer[apierror.LoggedError]
}

// confirm returns the error of the test.
func (c *cluster) confirm(context.Context) error {
	if err := c.other.Load(); err != nil {
		return err
	}
	return nil
}

// inBubble runs a test with a pod web that is Pending in the API and unknown on this node.
func inBubble(t *testing.T, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{apiServer: newAPIServer(), t: t, logs: &apitest.Log{}}
		c.here = &machine{shown: map[types.UID]Shown{}, state: map[types.UID]v1.PodStatus{}}
		client := c.serve(t)
		c.put(podFrom(t, spec("Always")+"status: {phase: Pending}"))
		c.start(client)
		test(c)
		c.end()
	})
}

// start starts a manager, as a new agent does.
func (c *cluster) start(client Sender) {
	c.Manager = New(Settings{
		Sent: func(time.Duration) {}, Confirm: c.confirm,
		Pods: c.here, Copies: c.apiServer, Sender: client, Log: slog.New(slog.NewTextHandler(c.logs, nil)),
	})
	c.set(func() { c.onChange = c.Changed })
	ctx, cancel := context.WithCancel(c.t.Context())
	c.stop, c.done = cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		c.Run(ctx)
	}()
	synctest.Wait()
}

// end ends the manager.
func (c *cluster) end() {
	c.stop()
	<-c.done
}

// becomes sets the status of the pod web here, and marks it.
func (c *cluster) becomes(status string) {
	c.is(status, func(*Shown) {})
	c.Mark("u1")
}

// is sets the status of the pod web here without a mark.
func (c *cluster) is(status string, change func(*Shown)) {
	pod := podFrom(c.t, spec("Always"))
	pod.Generation = 1
	s := Shown{Desired: podspec.New(pod, "", pod.UID)}
	change(&s)
	c.here.mu.Lock()
	defer c.here.mu.Unlock()
	c.here.shown["u1"], c.here.state["u1"] = s, statusFrom(c.t, status)
}

// passes lets time pass.
func (c *cluster) passes(d time.Duration) {
	apitest.Sleep(d)
}

// expect checks the requests since the last check.
func (c *cluster) expect(when string, want ...string) {
	c.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, c.log()); diff != "" {
		c.t.Errorf("%s (-want +got)\n%s", when, diff)
	}
}

const (
	running = "{phase: Running}"
	ready   = "{phase: Running, conditions: [{type: ContainersReady, status: 'True'}, {type: Ready, status: 'True'}]}"
	patched = "PATCH default/web"
)

// TestSendsAStatusOnce checks that a status is sent at once, and not again: not after its echo in the watch, not by a
// comparison, and not by a new agent.
func TestSendsAStatusOnce(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes(running)
		c.passes(50 * time.Millisecond)
		c.expect("within 50 ms", patched+" Running")
		c.Mark("u1")
		c.passes(time.Minute)
		c.expect("the same status")
		if s := c.status(); s.Phase != v1.PodRunning || s.ObservedGeneration != 1 || s.StartTime == nil {
			t.Errorf("the API has %+v", s)
		}
		c.end()
		c.start(c.Sender)
		c.Mark("u1")
		c.passes(time.Minute)
		c.expect("a new agent")
	})
}

// TestAnotherCluster checks that another cluster gets no status, and that the newest is sent when that ends.
func TestAnotherCluster(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.other.Store(&apierror.LoggedError{Err: errors.New("another cluster")})
		c.becomes("{phase: Running, message: old}")
		c.passes(time.Hour)
		c.becomes(running)
		c.passes(time.Minute)
		c.expect("another cluster")
		if s := c.Summary(); len(s.Unsent) != 1 || s.Failure != "another cluster" || c.logs.String() != "" {
			t.Errorf("%+v, log %s", s, c.logs)
		}
		c.other.Store(nil)
		c.Wake()
		c.expect("afterwards", patched+" Running")
	})
}

// TestObservesAtMostEvery50ms checks that many marks cause few observations, and that the last status is sent.
func TestObservesAtMostEvery50ms(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes(running)
		c.passes(time.Second)
		c.here.mu.Lock()
		c.here.lists = 0
		c.here.mu.Unlock()
		for i := range 100 {
			c.becomes(fmt.Sprintf("{phase: Running, message: m%d}", i))
			c.passes(time.Millisecond)
		}
		c.passes(50 * time.Millisecond)
		if c.here.lists > 3 {
			t.Errorf("%d observations in 150 ms", c.here.lists)
		}
		if s := c.status(); s.Message != "m99" {
			t.Errorf("the API has %q", s.Message)
		}
	})
}

// TestMarkLater checks that a change that others follow is observed with them, or within 250 ms.
func TestMarkLater(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.passes(time.Second)
		c.is("{phase: Pending}", func(*Shown) {})
		c.MarkLater("u1")
		c.passes(240 * time.Millisecond)
		c.expect("after 240 ms")
		c.becomes(running)
		c.MarkLater("u1")
		c.passes(12 * time.Millisecond)
		c.expect("soon after the second change", patched+" Running")
		c.passes(time.Second)
		c.is(ready, func(*Shown) {})
		c.MarkLater("u1")
		c.passes(252 * time.Millisecond)
		c.expect("after 252 ms", patched)
	})
}

// TestSlowObservationsTakeHalfOfTheTime checks that slow observations leave time for requests.
func TestSlowObservationsTakeHalfOfTheTime(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.here.slow = 200 * time.Millisecond
		for i := range 200 {
			c.becomes(fmt.Sprintf("{phase: Running, message: m%d}", i))
			c.passes(10 * time.Millisecond)
		}
		c.passes(time.Second)
		if c.here.lists < 5 || c.here.lists > 8 {
			t.Errorf("%d observations of 200 ms in 2 s", c.here.lists)
		}
		if s := c.status(); s.Message != "m199" {
			t.Errorf("the API has %q", s.Message)
		}
	})
}

// TestRetries checks the delays after each kind of failure, and that the newest status is sent after it.
func TestRetries(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		fault fault
		// at is the time in which the second request must come.
		from, to time.Duration
	}{
		"429":                   {refuses(429, metav1.StatusReasonTooManyRequests, "3"), 3 * second, 3200 * ms},
		"429 as text":           {busyText, 4 * second, 4200 * ms},
		"429 for a long time":   {refuses(429, metav1.StatusReasonTooManyRequests, "999999"), 30 * second, 30200 * ms},
		"500":                   {refuses(500, metav1.StatusReasonInternalError, ""), 800 * ms, 1200 * ms},
		"503 with Retry-After":  {refuses(503, metav1.StatusReasonServiceUnavailable, "2"), 2 * second, 2200 * ms},
		"403":                   {refuses(403, metav1.StatusReasonForbidden, ""), 800 * ms, 1200 * ms},
		"HTML with an error":    {html(502), 800 * ms, 1200 * ms},
		"HTML without an error": {html(200), 800 * ms, 1200 * ms},
		"no answer":             {disconnect, 800 * ms, 1200 * ms},
		"a hanging server":      {hang, 60800 * ms, 61200 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(k *cluster) {
				k.set(func() { k.faults = []fault{c.fault} })
				k.becomes("{phase: Pending, message: old}")
				k.passes(50 * time.Millisecond)
				k.expect("the first try", patched)
				if name != "no answer" && name != "a hanging server" {
					k.becomes(running)
				}
				k.passes(c.from - 100*time.Millisecond)
				k.expect("before the delay has passed")
				k.becomes(running)
				k.passes(c.to - c.from + 100*time.Millisecond)
				k.expect("after the delay", patched+" Running")
				if s := k.Summary(); len(s.Unsent) > 0 || s.Failure != "" {
					t.Errorf("in the end: %+v", s)
				}
				if strings.Contains(k.logs.String(), "\x1b") {
					t.Errorf("the log has control characters: %q", k.logs)
				}
			})
		})
	}
}

// TestDropsTheStatusOfAPodThatIsGone checks that there is no retry, and that the next comparison finds a pod that is
// there after all.
func TestDropsTheStatusOfAPodThatIsGone(t *testing.T) {
	for name, f := range map[string]fault{
		"404": refuses(404, metav1.StatusReasonNotFound, ""),
		"409": refuses(409, metav1.StatusReasonConflict, ""),
		"410": refuses(410, metav1.StatusReasonGone, ""),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *cluster) {
				c.set(func() { c.faults = []fault{f} })
				c.becomes(running)
				c.passes(9 * time.Second)
				c.expect("until the comparison", patched+" Running")
				c.passes(2 * time.Second)
				c.expect("after it", patched+" Running")
				if s := c.status(); s.Phase != v1.PodRunning {
					t.Errorf("the API has %q", s.Phase)
				}
			})
		})
	}
}

// TestAnotherPodWithTheName checks that a pod that was deleted and created again gets no status of the first.
func TestAnotherPodWithTheName(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.set(func() { c.stopped = true })
		other := podFrom(t, spec("Always")+"status: {phase: Pending}")
		other.UID = "u2"
		c.put(other)
		c.becomes(running)
		c.passes(time.Second)
		c.expect("a stale watch", patched+" Running")
		if s := c.status(); s.Phase != v1.PodPending {
			t.Errorf("the other pod is %s", s.Phase)
		}
		c.set(func() { delete(c.watched, "u1"); c.watched["u2"] = c.pods["default/web"] })
		c.becomes("{phase: Running, message: later}")
		c.passes(time.Minute)
		c.expect("after the watch has caught up")
	})
}

// TestUnreachableForMinutes checks that the newest status arrives, exactly once, as soon as the API server is back, and
// that the delays double to 30 s.
func TestUnreachableForMinutes(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.set(func() { c.broken = disconnect })
		for i := range 10 {
			c.becomes(fmt.Sprintf("{phase: Running, message: m%d}", i))
			c.passes(time.Minute)
		}
		if tries := len(c.log()); tries < 20 || tries > 32 {
			t.Errorf("%d tries in ten minutes", tries)
		}
		if s := c.Summary(); len(s.Unsent) != 1 || s.Failure == "" {
			t.Errorf("the summary is %+v", s)
		}
		if lines := strings.Count(c.logs.String(), "\n"); lines > 2 {
			t.Errorf("the log has %d lines\n%s", lines, c.logs)
		}
		c.set(func() { c.broken = nil })
		c.Wake()
		synctest.Wait()
		c.expect("back", patched+" Running")
		if s := c.status(); s.Message != "m9" {
			t.Errorf("the API has %q", s.Message)
		}
		c.passes(5 * time.Minute)
		c.expect("later")
	})
}

// TestWakeEndsHangingRequests checks that a request that waits for a lost connection does not delay the newest status.
func TestWakeEndsHangingRequests(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.set(func() { c.broken = hang })
		c.becomes("{phase: Pending, message: old}")
		c.passes(20 * time.Second)
		c.becomes(running)
		c.passes(time.Second)
		c.expect("one request in flight", patched)
		c.set(func() { c.broken = nil })
		c.Wake()
		synctest.Wait()
		c.expect("awake", patched+" Running")
	})
}

// TestALostAnswer checks that a status whose answer was lost is not sent again if the watch shows it, and once more if
// it does not.
func TestALostAnswer(t *testing.T) {
	for name, stopped := range map[string]bool{"the watch shows it": false, "the watch is late": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *cluster) {
				c.set(func() {
					c.stopped = stopped
					c.faults = []fault{c.answersNothing}
				})
				c.becomes(running)
				c.passes(5 * time.Second)
				want := []string{patched + " Running"}
				if stopped {
					want = append(want, patched+" Running")
				}
				c.expect("in the end", want...)
				if s := c.status(); s.Phase != v1.PodRunning {
					t.Errorf("the API has %q", s.Phase)
				}
			})
		})
	}
}

// answersNothing handles a request, but its answer is lost.
func (s *apiServer) answersNothing(w http.ResponseWriter, r *http.Request) bool {
	s.set(func() { s.handle(discard{http.Header{}}, r, s.lastBody) })
	return disconnect(w, r)
}

// discard drops an answer.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// TestNewestWins checks that a pod has one request in flight, and that only the newest status follows it.
func TestNewestWins(t *testing.T) {
	inBubble(t, func(c *cluster) {
		release := make(chan struct{})
		c.set(func() {
			c.faults = []fault{func(http.ResponseWriter, *http.Request) bool { <-release; return false }}
		})
		for i := range 5 {
			c.becomes(fmt.Sprintf("{phase: Running, message: m%d}", i))
			c.passes(time.Second)
		}
		c.expect("slow", patched+" Running")
		close(release)
		c.passes(time.Second)
		c.expect("released", patched)
		if s := c.status(); s.Message != "m4" {
			t.Errorf("the API has %q", s.Message)
		}
	})
}

// TestInOrder checks that a server that gets each state sees them in their order, and none twice.
func TestInOrder(t *testing.T) {
	inBubble(t, func(c *cluster) {
		var seen []string
		c.set(func() {
			c.observe = func(p *v1.Pod) { seen = append(seen, string(p.Status.Phase)+" "+p.Status.Message) }
		})
		var want []string
		states := []string{"Pending create", "Pending init", "Running start", "Running ready", "Succeeded end"}
		for _, state := range states {
			phase, message, _ := strings.Cut(state, " ")
			c.becomes("{phase: " + phase + ", message: " + message + "}")
			c.passes(60 * time.Millisecond)
			want = append(want, state)
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// TestRevertsForeignEdits checks that another program's edit of podctl's fields is reverted by the comparison, and that
// its other edits stay.
func TestRevertsForeignEdits(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes(ready)
		c.passes(time.Second)
		c.log()
		c.edit("default/web", func(p *v1.Pod) {
			p.Status.Conditions[0].Status = v1.ConditionFalse
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: "x/y", Status: v1.ConditionTrue})
		})
		c.passes(10 * time.Second)
		c.expect("after the comparison", patched)
		s := c.status()
		i := conditionIn(s.Conditions, v1.ContainersReady)
		if s.Conditions[i].Status != v1.ConditionTrue || conditionIn(s.Conditions, "x/y") < 0 {
			t.Errorf("the API has %v", s.Conditions)
		}
	})
}

// TestAFieldThatTheServerDropsIsSentOnce checks that a server that does not store a field does not get it every 10 s.
func TestAFieldThatTheServerDropsIsSentOnce(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes("{phase: Running, hostIP: 192.0.2.1}")
		c.set(func() { c.observe = func(p *v1.Pod) { p.Status.HostIP = "" } })
		c.passes(5 * time.Minute)
		c.expect("in five minutes", patched+" Running")
		c.edit("default/web", func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} })
		c.passes(5 * time.Minute)
		c.expect("after another change", patched)
	})
}

// TestAReadinessGateOpens checks that Ready follows the condition of another program at once.
func TestAReadinessGateOpens(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.edit("default/web", func(p *v1.Pod) { p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "x/y"}} })
		c.becomes(ready)
		c.passes(time.Second)
		c.expect("closed", patched+" Running")
		status := func() v1.ConditionStatus {
			s := c.status()
			return s.Conditions[conditionIn(s.Conditions, v1.PodReady)].Status
		}
		if got := status(); got != v1.ConditionFalse {
			t.Errorf("closed: %s", got)
		}
		c.edit("default/web", func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: "x/y", Status: v1.ConditionTrue})
		})
		c.expect("open", patched)
		if got := status(); got != v1.ConditionTrue {
			t.Errorf("open: %s", got)
		}
	})
}

// deleted marks the pod web as deleted in the API.
func (c *cluster) deleted(finalizers ...string) {
	c.edit("default/web", func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(30))
		p.Finalizers = finalizers
	})
}

func reclaimed(s *Shown) { s.Reclaimed = true }

// TestFinalDelete checks that DELETE follows the final status, and only once the pod has ended and its resources are
// reclaimed.
func TestFinalDelete(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes(running)
		c.passes(time.Second)
		c.deleted()
		c.passes(time.Second)
		c.becomes("{phase: Failed}")
		c.passes(time.Minute)
		c.expect("not reclaimed", patched+" Running", patched+" Failed")
		c.is("{phase: Failed, reason: Gone}", reclaimed)
		c.Mark("u1")
		c.passes(time.Minute)
		c.expect("reclaimed", patched, "DELETE default/web")
		c.becomes("{phase: Failed, reason: Other}")
		c.passes(time.Minute)
		c.expect("the object is gone")
	})
}

// TestNoDelete checks the pods that podctl does not delete.
func TestNoDelete(t *testing.T) {
	for name, prepare := range map[string]func(c *cluster){
		"not deleted in the API": func(c *cluster) { c.is("{phase: Failed}", reclaimed) },
		"a mirror pod": func(c *cluster) {
			c.edit("default/web", func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "h"} })
			c.deleted()
			c.is("{phase: Failed}", reclaimed)
		},
		"it may run": func(c *cluster) {
			c.deleted()
			c.is("{phase: Failed}", func(s *Shown) { s.Reclaimed, s.MayRun = true, true })
		},
		"it may run, and has failed in the API": func(c *cluster) {
			c.edit("default/web", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed })
			c.deleted()
			c.is("{phase: Failed}", func(s *Shown) { s.Reclaimed, s.MayRun = true, true })
		},
		"not terminal": func(c *cluster) {
			c.deleted()
			c.is("{phase: Running}", reclaimed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *cluster) {
				prepare(c)
				c.Mark("u1")
				c.passes(time.Minute)
				for _, r := range c.log() {
					if strings.HasPrefix(r, "DELETE") {
						t.Errorf("it sends %s", r)
					}
				}
			})
		})
	}
}

// TestFinalizers checks that an object that waits for its finalizers gets one DELETE, also if the agent starts again.
func TestFinalizers(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.deleted("a/b")
		c.is("{phase: Failed}", reclaimed)
		c.Mark("u1")
		c.passes(time.Minute)
		c.expect("at the end", patched+" Failed", "DELETE default/web")
		c.end()
		c.start(c.Sender)
		c.Mark("u1")
		c.passes(time.Minute)
		c.expect("a new agent")
		if finalizers := c.Get("u1").Finalizers; len(finalizers) != 1 {
			t.Errorf("finalizers %v", finalizers)
		}
	})
}

// TestALostAnswerOfDelete checks that the pod is read before DELETE is sent again.
func TestALostAnswerOfDelete(t *testing.T) {
	for name, want := range map[string][]string{
		"the pod was deleted":     {"DELETE default/web", "GET default/web"},
		"the pod has a finalizer": {"DELETE default/web", "GET default/web"},
		"the pod was not deleted": {"DELETE default/web", "GET default/web", "DELETE default/web"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *cluster) {
				if c.deleted(); name == "the pod has a finalizer" {
					c.deleted("a/b")
				}
				c.becomes("{phase: Failed}")
				c.passes(time.Second)
				c.log()
				c.set(func() {
					c.stopped = true
					if c.faults = []fault{c.answersNothing}; name == "the pod was not deleted" {
						c.faults = []fault{disconnect}
					}
				})
				c.is("{phase: Failed}", reclaimed)
				c.Mark("u1")
				c.passes(5 * time.Second)
				c.expect("in the end", want...)
			})
		})
	}
}

// TestAPodThatVanishes checks that podctl sends no request for a pod that is gone from the watch, although it still
// ends here.
func TestAPodThatVanishes(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes(running)
		c.passes(time.Second)
		c.log()
		c.set(func() { delete(c.watched, "u1") })
		before := c.here.lists
		c.becomes("{phase: Failed}")
		c.passes(time.Minute)
		c.expect("it ends")
		if n := c.here.lists - before; n > 0 {
			t.Errorf("%d observations of a pod that the API does not have", n)
		}
		if s := c.Summary(); len(s.Unsent) != 0 {
			t.Errorf("%d pending", len(s.Unsent))
		}
	})
}

// TestWaitsForTheList checks that nothing is sent before the list of pods is read, and everything after it.
func TestWaitsForTheList(t *testing.T) {
	inBubble(t, func(c *cluster) {
		copied := c.Get("u1")
		c.set(func() { c.unlisted = true; delete(c.watched, "u1") })
		c.becomes(running)
		c.passes(time.Minute)
		c.expect("not listed")
		if s := c.Summary(); len(s.Unsent) != 1 {
			t.Errorf("%d pending", len(s.Unsent))
		}
		c.set(func() { c.unlisted = false; c.watched["u1"] = copied })
		c.Wake()
		c.expect("listed", patched+" Running")
	})
}

// TestAWatchThatIsLate checks that the answer to a patch counts until the watch has caught up, and that the pod is read
// if that takes long: the API server may have been restored from a backup.
func TestAWatchThatIsLate(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes(running)
		c.passes(time.Second)
		c.set(func() { c.stopped = true })
		c.becomes("{phase: Running, message: second}")
		c.passes(2 * time.Second)
		c.becomes("{phase: Running, message: third}")
		c.passes(2 * time.Second)
		c.expect("two changes", patched+" Running", patched, patched)
		backup := podFrom(t, spec("Always")+"status: {phase: Pending}")
		c.set(func() {
			backup.ResourceVersion = "50"
			c.pods["default/web"], c.watched["u1"] = backup, backup
			c.version, c.stopped = 50, false
		})
		c.passes(20 * time.Second)
		c.expect("an old version", "GET default/web", patched+" Running")
		if s := c.status(); s.Phase != v1.PodRunning {
			t.Errorf("the API has %q", s.Phase)
		}
	})
}

// TestUnobservablePod checks that its last status stays in the API, and that the next one is sent.
func TestUnobservablePod(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.becomes(running)
		c.passes(time.Second)
		c.log()
		c.here.mu.Lock()
		c.here.err = errors.New("the runtime does not answer")
		c.here.mu.Unlock()
		c.becomes("{phase: Running, message: later}")
		c.passes(5 * time.Minute)
		c.expect("unobserved")
		c.here.mu.Lock()
		c.here.err = nil
		c.here.mu.Unlock()
		c.passes(30 * time.Second)
		c.expect("observed again", patched)
	})
}

// TestLastStatuses checks that the last status is sent when the agent ends, and that a server that hangs does not delay
// its end.
func TestLastStatuses(t *testing.T) {
	for name, f := range map[string]fault{"a server that answers": nil, "one that hangs": hang} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *cluster) {
				c.passes(time.Second)
				c.set(func() { c.broken = f })
				c.becomes(running)
				began := time.Now()
				c.end()
				if took := time.Since(began); took > time.Second || (f == nil && took > 0) {
					t.Errorf("the end took %s", took)
				}
				c.expect("in the end", patched+" Running")
			})
		})
	}
}

// TestForgetsPods checks that no request follows for a pod that the agent does not show any more.
func TestForgetsPods(t *testing.T) {
	inBubble(t, func(c *cluster) {
		c.set(func() { c.broken = disconnect })
		c.becomes(running)
		c.passes(5 * time.Second)
		c.here.mu.Lock()
		clear(c.here.shown)
		c.here.mu.Unlock()
		c.passes(10 * time.Second)
		c.log()
		c.passes(10 * time.Minute)
		c.expect("not shown")
		if s := c.Summary(); len(s.Unsent) != 0 {
			t.Errorf("%d pending", len(s.Unsent))
		}
	})
}

// many shows and marks 110 pods with a status that the API does not have.
func (c *cluster) many() {
	for i := range 110 {
		pod := podFrom(c.t, spec("Always")+"status: {phase: Pending}")
		pod.Name, pod.UID = fmt.Sprintf("p%d", i), types.UID(fmt.Sprint("uid", i))
		c.put(pod)
		c.here.mu.Lock()
		c.here.shown[pod.UID] = Shown{Desired: podspec.New(pod, "", pod.UID)}
		c.here.state[pod.UID] = v1.PodStatus{Phase: v1.PodRunning}
		c.here.mu.Unlock()
		c.Mark(pod.UID)
	}
}

// TestFailuresOfManyPods checks that an API server that refuses all statuses for ten minutes does not fill the log.
func TestFailuresOfManyPods(t *testing.T) {
	inBubble(t, func(c *cluster) {
		refused := 0
		c.set(func() {
			c.broken = func(w http.ResponseWriter, _ *http.Request) bool {
				number := 0
				c.set(func() {
					refused++
					number = refused
				})
				answerStatus(w, 500, metav1.StatusReasonInternalError, fmt.Sprint("failure ", number))
				return true
			}
		})
		c.many()
		c.passes(10 * time.Minute)
		if lines := strings.Count(c.logs.String(), "\n"); lines < 10 || lines > 10+60 {
			t.Errorf("%d lines for %d failures", lines, refused)
		}
	})
}

// TestManyPods checks that at most eight requests are in flight, and that all of 110 pods get their status.
func TestManyPods(t *testing.T) {
	inBubble(t, func(c *cluster) {
		var inFlight, most int
		c.set(func() {
			c.broken = func(http.ResponseWriter, *http.Request) bool {
				c.set(func() { inFlight++; most = max(most, inFlight) })
				time.Sleep(100 * time.Millisecond)
				c.set(func() { inFlight-- })
				return false
			}
		})
		c.many()
		c.passes(5 * time.Second)
		if log := c.log(); len(log) != 110 || len(slices.Compact(slices.Sorted(slices.Values(log)))) != 110 {
			t.Errorf("%d requests", len(log))
		}
		if most != requestsMax {
			t.Errorf("%d requests at the same time", most)
		}
		c.here.mu.Lock()
		clear(c.here.shown)
		c.here.mu.Unlock()
		c.passes(time.Minute)
		if s := c.Summary(); len(s.Unsent) > 0 {
			t.Errorf("pods that are gone are pending: %d", len(s.Unsent))
		}
	})
}

func conditionIn(conditions []v1.PodCondition, kind v1.PodConditionType) int {
	return slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == kind })
}
