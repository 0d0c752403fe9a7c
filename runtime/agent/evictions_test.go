package agent

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/shutdown"
	"github.com/podctl/podctl/runtime/model"
)

// active returns the names of the pods that can be evicted.
func (l *lab) active(a *Agent) string {
	l.t.Helper()
	var names []string
	for _, pod := range a.evictor.Active(l.t.Context()) {
		names = append(names, pod.Name)
	}
	return strings.Join(names, " ")
}

// TestEvictions checks that an evicted pod is gone when Evict returns. It stays Failed, also with the next agent, until
// its manifest changes. Other pods are not touched. While the node has a pressure condition, no pod is admitted.
func TestEvictions(t *testing.T) {
	l, log := admissionLab(t)
	c := newChannel()
	a, stop := l.run(c)
	one, two := l.sized("one", "1"), l.sized("two", "1")
	c.updates <- []*podspec.Desired{one, two}
	l.until("both run", func() bool { return len(l.running()) == 2 })
	l.until("both can be evicted", func() bool { return strings.Contains(l.active(a), "one") && strings.Contains(l.active(a), "two") })
	before := l.running()
	why := &model.Eviction{Message: "The node was low on resource: memory. ", Signal: "memory.available", At: time.Now().UTC()}
	if err := a.evictor.Evict(t.Context(), one.Pod.UID, why); err != nil {
		t.Fatal(err)
	}
	if now := l.running(); now["one"] != "" || now["two"] != before["two"] {
		t.Errorf("%v run, before %v", now, before)
	}
	if e := l.checkpoint("one").Eviction; e == nil || !e.Done || e.Message != why.Message || l.active(a) != "two" {
		t.Errorf("record %+v, active %s", e, l.active(a))
	}
	if p := l.status(a, "one"); p.Eviction == nil || p.Eviction.Signal != why.Signal {
		t.Errorf("status %+v", p)
	}
	page := httptest.NewRecorder()
	a.Metrics().Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if !strings.Contains(page.Body.String(), `kubelet_evictions{eviction_signal="memory.available"} 1`) || log.count("pod evicted") != 1 {
		t.Errorf("%d log lines of the eviction, or no metric", log.count("pod evicted"))
	}
	a.evictor.Pressure([]v1.NodeConditionType{v1.NodeDiskPressure})
	if facts := a.NodeFacts(); len(facts.Pressures) != 1 || l.factsChanged.Load() != 1 {
		t.Errorf("facts %+v, changed %d times", facts, l.factsChanged.Load())
	}
	three := l.sized("three", "1")
	c.updates <- []*podspec.Desired{one, two, three}
	l.until("three is rejected", func() bool { p := l.status(a, "three"); return p != nil && p.Rejection != nil })
	if r := l.checkpoint("three").Rejection; r.Reason != model.Evicted ||
		r.StatusMessage() != "Pod was rejected: The node had condition: [DiskPressure]. " {
		t.Errorf("rejection %+v", r)
	}
	stop()

	a, stop = l.run(c)
	defer stop()
	c.updates <- []*podspec.Desired{one, two}
	l.until("one stays evicted", func() bool { p := l.status(a, "one"); return p != nil && p.Eviction != nil })
	if l.active(a) != "two" || log.count("pod evicted") != 1 {
		t.Errorf("active pods %s, %d log lines", l.active(a), log.count("pod evicted"))
	}
	c.updates <- []*podspec.Desired{l.sized("one", "2"), two}
	l.until("one runs again", func() bool { return l.running()["one"] != "" })
	if now := l.running(); l.checkpoint("one").Eviction != nil || now["two"] != before["two"] {
		t.Errorf("%v run, before %v", now, before)
	}
}

// TestRefusedEvictions checks that Evict does not wait for a pod that does not exist, or is being deleted or evicted.
func TestRefusedEvictions(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	a, stop := l.run(c)
	defer stop()
	c.updates <- []*podspec.Desired{l.manifest("one", "i:1")}
	l.until("it can be evicted", func() bool { return l.active(a) == "one" })
	if err := a.evictor.Evict(t.Context(), types.UID("nobody"), &model.Eviction{}); err == nil {
		t.Error("an unknown pod was evicted")
	}
	one := podspec.UID("default", "one")
	pending := make(chan error, 1)
	in := func(do func()) { a.inbox.post(t.Context(), do) }
	in(func() { a.evictor.results[one] = pending })
	if err := a.evictor.Evict(t.Context(), one, &model.Eviction{}); err == nil || l.active(a) != "" {
		t.Errorf("the pod is evicted again while it is being evicted: %v, active %q", err, l.active(a))
	}
	in(func() { a.evictor.forget(one) })
	if err := <-pending; err == nil || l.active(a) != "one" {
		t.Errorf("the eviction does not take place: %v, active %q", err, l.active(a))
	}
	in(func() {
		a.evictor.results["deleted"], a.last["deleted"] = pending, lastPass{}
		a.forget(a.gone()...)
	})
	if err := <-pending; err == nil {
		t.Error("a pod was evicted that another process has deleted")
	}
	if err := a.StopPods(t.Context(), shutdown.Settings{Within: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := a.evictor.Evict(t.Context(), one, &model.Eviction{}); err == nil {
		t.Error("a pod was evicted while all pods are being stopped")
	}
}
