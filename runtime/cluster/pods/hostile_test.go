package pods

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/cluster/listwatch"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// bubble is a source that watches a server in memory, with a clock that the test sets.
type bubble struct {
	*server

	network *apitest.Server
	source  *Source

	mu  sync.Mutex
	log strings.Builder
	// last is the last update.
	last *sources.Update
}

// Write adds to the log.
func (b *bubble) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(text)
}

// takeLog returns the lines of the log since the last call.
func (b *bubble) takeLog() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.log.String()) {
		lines = append(lines, line)
	}
	b.log.Reset()
	return lines
}

// state returns the UIDs of the last update.
func (b *bubble) state() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		return "nothing"
	}
	return uids(*b.last)
}

// inBubble runs a test with a source. load replaces the conversion of pods, if it is not nil.
func inBubble(t *testing.T, load func(*v1.Pod) (*podspec.Desired, error), test func(*bubble), pods ...v1.Pod) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{server: &server{pods: pods, version: 5, events: make(chan any)}}
		network, config := apitest.Serve(t, http.HandlerFunc(b.serve))
		b.network = network
		set, err := apiclient.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if load == nil {
			load = func(pod *v1.Pod) (*podspec.Desired, error) { return podspec.New(pod, "api", pod.UID), nil }
		}
		b.source = New(Settings{
			Name: "api", Client: set.Core, Node: "n", Confirm: apitest.Confirmed, Load: load,
			Known: func(types.UID) bool { return false }, Log: slog.New(slog.NewTextHandler(b, nil)),
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.source.Run(ctx, nil, func(u sources.Update) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.last = &u
			})
		}()
		synctest.Wait()
		test(b)
		stop()
		b.endWatch()
		<-ended
	})
}

// endWatch ends the watch, as an API server does that stops.
func (b *bubble) endWatch() {
	select {
	case b.events <- nil:
	default:
	}
}

// answers lets the server answer every request in this way. nil lets it answer as usual.
func (b *bubble) answers(with http.HandlerFunc) {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	b.answer = with
}

// bad are the bad answers of an API server, and what the log reports.
func bad() map[string]struct {
	answer http.HandlerFunc
	want   string
} {
	const older = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"4"},"items":[]}`
	const cut = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`
	return map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a page":                    {apitest.Page(200), "text/html"},
		"a page, not found":         {apitest.Page(404), "the server could not find the requested resource"},
		"unauthorized":              {apitest.Refusal(401, metav1.StatusReasonUnauthorized, 0), credentials},
		"forbidden":                 {apitest.Refusal(403, metav1.StatusReasonForbidden, 0), "check the permissions"},
		"a conflict":                {apitest.Refusal(409, metav1.StatusReasonConflict, 0), "refuses it (409 Conflict)"},
		"gone":                      {apitest.Refusal(410, metav1.StatusReasonExpired, 0), "refuses it (410 Expired)"},
		"too many requests":         {apitest.Refusal(429, metav1.StatusReasonTooManyRequests, 20), "too many requests (429)"},
		"too many requests, a year": {apitest.Refusal(429, metav1.StatusReasonTooManyRequests, 31536000), "too many requests (429)"},
		"a failure":                 {apitest.Refusal(500, metav1.StatusReasonInternalError, 0), "has failed (500)"},
		"a failure with a delay":    {apitest.Refusal(503, metav1.StatusReasonServiceUnavailable, 5), "has failed (503)"},
		"an end in the middle":      {apitest.Cut, "unexpected EOF"},
		"the end of the connection": {apitest.Disconnect, "EOF"},
		"half of an object":         {apitest.JSON(200, cut), "unexpected end of JSON input"},
		"an object without a kind":  {apitest.JSON(200, "{}"), "the answer is not an object of the API"},
		"nothing":                   {apitest.JSON(200, ""), "unexpected end of JSON input"},
		"another object":            {apitest.JSON(200, `{"kind":"Status","apiVersion":"v1","status":"Success"}`), "instead of a list of pods"},
		"an empty list, no version": {apitest.JSON(200, `{"kind":"PodList","apiVersion":"v1"}`), "a list of pods without a version"},
		"an older, empty list":      {onlyCached(apitest.JSON(200, older)), ""},
		"no answer":                 {apitest.Hang, "no answer in time"},
	}
}

// requests returns the number of requests since the last call.
func (b *bubble) requests() int {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	n := len(b.selector)
	b.selector = nil
	return n
}

// credentials is a failure of all requests, which the connection logs.
const credentials = "does not accept the credentials"

// onlyCached answers requests that a cache may answer, and not those that the API server answers from its store.
func onlyCached(with http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") != "" && r.URL.Query().Get("watch") != "true" {
			with(w, r)
		}
	}
}

// TestBadAnswers checks that no bad answer ends or changes a pod, that the log reports what happened once, and that the
// source recovers.
func TestBadAnswers(t *testing.T) {
	for name, c := range bad() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bubble) {
				if got := b.state(); got != "1" {
					t.Fatalf("first %q", got)
				}
				b.answers(c.answer)
				b.endWatch()
				apitest.Sleep(30 * time.Minute)
				b.check(t, c.want)
				if n := b.requests(); n > 2000 {
					t.Errorf("%d requests in half an hour", n)
				}
				b.answers(nil)
				b.server.mu.Lock()
				b.pods = append(b.pods, podNamed("two", "2"))
				b.version = 9
				b.server.mu.Unlock()
				b.endWatch()
				apitest.Sleep(90 * time.Minute)
				if got := b.state(); got != "1 2" {
					t.Errorf("afterwards %q", got)
				}
				if log := fmt.Sprint(b.takeLog()); c.want != "" && c.want != credentials && strings.Count(log, "works again") != 1 {
					t.Errorf("afterwards the log has %s", log)
				}
			}, podNamed("one", "1"))
		})
	}
}

// check checks the state and the log while the API server answers badly.
func (b *bubble) check(t *testing.T, want string) {
	t.Helper()
	if got := b.state(); got != "1" || !b.source.Listed() || b.source.Get("1") == nil {
		t.Errorf("meanwhile %q", got)
	}
	log := b.takeLog()
	text := fmt.Sprint(log)
	if failure := b.source.Failure(); (failure != "") != (want != "") {
		t.Errorf("the failure is %q", failure)
	}
	if want == credentials {
		want = ""
	}
	if !strings.Contains(text, want) || len(log) > 2 || (want == "") != (len(log) == 0) ||
		want != "" && !strings.Contains(text, "pods keep running") {
		t.Errorf("the log has %d lines: %s", len(log), text)
	}
}

// add adds a pod without an event of the watch.
func (b *bubble) add(pod v1.Pod) {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	b.pods = append(b.pods, pod)
	b.version++
}

// TestRefusedConnections checks that the log reports once that no connection is possible, although each try has another
// port.
func TestRefusedConnections(t *testing.T) {
	inBubble(t, nil, func(b *bubble) {
		b.network.Refuse(true)
		b.endWatch()
		apitest.Sleep(time.Hour)
		b.check(t, "check that the API server runs")
		b.network.Refuse(false)
		b.add(podNamed("two", "2"))
		apitest.Sleep(time.Minute)
		if got, log := b.state(), fmt.Sprint(b.takeLog()); got != "1 2" || !strings.Contains(log, "works again") {
			t.Errorf("afterwards %q, %s", got, log)
		}
	}, podNamed("one", "1"))
}

// TestSilentWatch checks that a watch without events that the server never ends is replaced.
func TestSilentWatch(t *testing.T) {
	inBubble(t, nil, func(b *bubble) {
		b.add(podNamed("two", "2"))
		apitest.Sleep(20 * time.Minute)
		if got, log := b.state(), b.takeLog(); got != "1 2" || len(log) != 0 {
			t.Errorf("%q, %s", got, log)
		}
	}, podNamed("one", "1"))
}

// TestSlowAnswers checks that a server that needs minutes for each answer is slow, and not a failure.
func TestSlowAnswers(t *testing.T) {
	for _, after := range []time.Duration{3 * time.Minute, 25 * time.Minute} {
		inBubble(t, nil, func(b *bubble) {
			b.answers(apitest.Slow(after, func(http.ResponseWriter, *http.Request) {}))
			b.add(podNamed("two", "2"))
			b.endWatch()
			apitest.Sleep(5 * time.Hour)
			if got := b.state(); got != "1 2" {
				t.Errorf("%s: %q", after, got)
			}
			if log := b.takeLog(); after < listwatch.Patience && len(log) != 0 {
				t.Errorf("%s: %s", after, log)
			}
		}, podNamed("one", "1"))
	}
}

// TestEmptied checks that the pods of an API server that was emptied end, and come back if it is restored: it is
// indistinguishable from a deletion.
func TestEmptied(t *testing.T) {
	inBubble(t, nil, func(b *bubble) {
		b.server.mu.Lock()
		pods := b.pods
		b.pods, b.version = nil, 2
		b.server.mu.Unlock()
		b.events <- expiredEvent()
		apitest.Sleep(time.Minute)
		if got := b.state(); got != "" || !b.last.Complete {
			t.Errorf("emptied: %q", got)
		}
		b.server.mu.Lock()
		b.pods, b.version = pods, 9
		b.server.mu.Unlock()
		b.events <- expiredEvent()
		apitest.Sleep(time.Minute)
		if got := b.state(); got != "1" {
			t.Errorf("restored: %q", got)
		}
	}, podNamed("one", "1"))
}

func expiredEvent() any {
	return map[string]any{"type": "ERROR", "object": metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
	}}
}

// refusing refuses pods whose annotation bad is set.
func refusing(pod *v1.Pod) (*podspec.Desired, error) {
	if pod.Annotations["bad"] != "" {
		return nil, errors.New("it is\nbad")
	}
	return podspec.New(pod, "api", pod.UID), nil
}

// TestUnusableVersions checks that a pod with a version that podctl cannot use keeps the last usable one, that a pod
// that this machine has a record of is not lost, and that a new pod is rejected.
func TestUnusableVersions(t *testing.T) {
	c := newCopies("n", refusing, func(uid types.UID) bool { return uid == "2" })
	edited, recorded, fresh := podNamed("edited", "1"), podNamed("recorded", "2"), podNamed("new", "3")
	recorded.Annotations, fresh.Annotations = map[string]string{"bad": "x"}, map[string]string{"bad": "x"}
	recorded.DeletionTimestamp, recorded.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(4))
	c.replace([]*v1.Pod{&edited, &recorded, &fresh})
	used := c.byUID["1"].desired
	again := *edited.DeepCopy()
	again.Annotations = map[string]string{"bad": "x"}
	c.set(&again)
	u := c.update("api")
	if len(u.Pods) != 1 || u.Pods[0] != used || !slices.Equal(u.Unread, []string{"2"}) || u.Ending["2"] != 4 {
		t.Errorf("pods %q, unread %q, ending %v", uids(u), u.Unread, u.Ending)
	}
	if len(u.Problems) != 3 || u.Problems[0].Text != `a/edited: it is\nbad` {
		t.Errorf("problems %v", u.Problems)
	}
	all := c.rejected()
	if len(all) != 1 || all[0].Pod.UID != "3" || all[0].Status().Status.Phase != v1.PodFailed || all[0].Pod.Spec.NodeName != "" {
		t.Errorf("rejected %v", all)
	}
	if r := c.announce("3"); r == nil || r.Message != `it is\nbad` || c.announce("3") != nil || c.announce("1") != nil {
		t.Errorf("announced %v", r)
	}
	fresh.Status.Phase = v1.PodFailed
	if c.set(&fresh); c.announce("3") != nil {
		t.Error("a rejection is announced again after its status")
	}
}

// manyPods is more pods than any node runs.
const manyPods = 10_000

// TestManyPods checks that a list of many pods is used, with little memory for each.
func TestManyPods(t *testing.T) {
	all := make([]v1.Pod, manyPods)
	for i := range all {
		all[i] = podNamed(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i)))
	}
	inBubble(t, nil, func(b *bubble) {
		apitest.Sleep(time.Minute)
		if got := len(strings.Fields(b.state())); got != manyPods {
			t.Fatalf("%d pods: %s", got, b.takeLog())
		}
		var used goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&used)
		if perPod := used.HeapAlloc / manyPods; perPod > 20<<10 {
			t.Errorf("%d bytes for each pod", perPod)
		}
		t.Logf("%d MiB with %d pods", used.HeapAlloc>>20, manyPods)
	}, all...)
}

// TestHostilePods checks that pods with names and uids of others, of other nodes, and without a name affect no other
// pod.
func TestHostilePods(t *testing.T) {
	c := newCopies("n", refusing, func(types.UID) bool { return false })
	first := podNamed("first", "1")
	c.replace([]*v1.Pod{&first})
	used := c.byUID["1"].desired
	twin, foreign, nameless, pathLike := podNamed("a-twin", "1"), podNamed("first", "4"), podNamed("", ""), podNamed("../x", "5")
	foreign.Spec.NodeName = "other"
	for _, pod := range []*v1.Pod{&nameless, &pathLike} {
		pod.Annotations = map[string]string{"bad": "x"}
	}
	c.replace([]*v1.Pod{&twin, &foreign, &nameless, &pathLike, &first})
	c.set(&twin)
	c.set(&foreign)
	u := c.update("api")
	if len(u.Pods) != 1 || u.Pods[0] != used || len(u.Problems) != 3 || len(c.rejected()) != 0 {
		t.Errorf("pods %q, problems %v, rejected %v", uids(u), u.Problems, c.rejected())
	}
	if c.removePod(&twin); uids(c.update("api")) != "1" || c.byUID["1"] == nil {
		t.Error("the end of a pod removes another one with its uid")
	}
	var many []*v1.Pod
	for i := range 10_000 {
		pod := podNamed(fmt.Sprintf("p%d", i), types.UID(fmt.Sprintf("u%d", i)))
		pod.Annotations = map[string]string{"bad": "x"}
		many = append(many, &pod)
	}
	c.replace(many)
	if u = c.update("api"); len(u.Problems) > 30 || len(c.rejected()) != 10_000 {
		t.Errorf("%d problems, %d rejected", len(u.Problems), len(c.rejected()))
	}
}
