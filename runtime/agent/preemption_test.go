package agent

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
)

// critical returns a pod of the source with a system-critical class.
func (l *lab) critical(name, cores string) *podspec.Desired {
	l.t.Helper()
	d := l.sized(name, cores)
	d.Pod.Spec.PriorityClassName = "system-node-critical"
	return d
}

// events returns how many events with a reason a pod has.
func (l *lab) events(name, reason string) (n int) {
	l.t.Helper()
	h, err := l.layout.Pod(podspec.UID("default", name)).History().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range h.Events {
		if e.Reason == reason {
			n += e.Count
		}
	}
	return n
}

// TestPreemption checks that a critical pod that does not fit ends the fewest pods of lower priority, runs once they
// have ended, and that the others run on. A preempted pod is Failed, and stays so with the next agent.
func TestPreemption(t *testing.T) {
	l, log := admissionLab(t)
	c := newChannel()
	a, stop := l.run(c)
	low := []*podspec.Desired{l.sized("large", "3"), l.sized("small", "1")}
	c.updates <- low
	l.until("both run", func() bool { return len(l.running()) == 2 })
	before := l.running()
	c.updates <- append(low, l.critical("urgent", "2"))
	l.until("urgent runs", func() bool { return l.running()["urgent"] != "" })
	if now := l.running(); now["large"] != "" || now["small"] != before["small"] {
		t.Errorf("%v run, before %v", now, before)
	}
	e := l.checkpoint("large").Eviction
	if e == nil || !e.Done || !e.Preempted || e.Signal != "cpu" || l.events("large", "Preempting") != 1 ||
		l.events("urgent", "OutOfcpu") > 0 || l.events("small", "Preempting") > 0 {
		t.Errorf("%+v, %d events", e, l.events("large", "Preempting"))
	}
	page := httptest.NewRecorder()
	a.Metrics().Handler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if !strings.Contains(page.Body.String(), `kubelet_preemptions{preemption_signal="cpu"} 1`) || log.count("pod preempted") != 1 {
		t.Errorf("%d log lines, or no metric", log.count("pod preempted"))
	}
	stop()

	a, stop = l.run(c)
	defer stop()
	c.updates <- append(low, l.critical("urgent", "2"), l.critical("huge", "9"))
	l.until("huge is rejected", func() bool { p := l.status(a, "huge"); return p != nil && p.Rejection != nil })
	if r := l.checkpoint("huge").Rejection; r.Reason != model.UnexpectedAdmissionError {
		t.Errorf("%+v", r)
	}
	if now := l.running(); now["large"] != "" || now["small"] != before["small"] || log.count("pod preempted") != 1 {
		t.Errorf("%v run, before %v", now, before)
	}
}

// TestDeletedPodsAreNotPreempted checks that a preemption does not shorten the grace period of a pod whose deletion has
// begun since it was chosen.
func TestDeletedPodsAreNotPreempted(t *testing.T) {
	l := newStill(t)
	d := l.manifest("one", "a", "a1", 1)
	l.agent.workers.Remove(l.now, d, nil)
	l.agent.workers.Next(l.now)
	l.agent.evictor.preempt(l.now, &model.Preemption{Pods: []model.PodRef{model.RefOf(d.Pod)}, Resource: "cpu"})
	if _, cut, _ := l.agent.workers.Next(l.now); len(cut) > 0 {
		t.Error("the deletion is cut short")
	}
}

// TestPreemptedResourcesAreKept checks that a pod that comes while a critical pod waits is admitted after it.
func TestPreemptedResourcesAreKept(t *testing.T) {
	l := newStill(t)
	low, urgent := l.manifest("one", "a", "a1", 1), l.manifest("one", "z", "z1", 1)
	urgent.Pod.Spec.PriorityClassName = "system-node-critical"
	l.agent.settings.Admission = &admission.Settings{}
	l.agent.handleSourceUpdate(update("one", low, urgent))
	first := func() (names string) {
		for _, d := range l.agent.admitter.optionsFor(low.Pod.UID).First {
			names += d.Pod.Name
		}
		return names
	}
	if got := first(); got != "" {
		t.Errorf("before it waits: %s", got)
	}
	for rejected, want := range map[bool]string{false: "z", true: ""} {
		l.agent.admitter.refused[urgent.Pod.UID] = refusal{reason: "OutOfcpu", rejected: rejected}
		if got := first(); got != want {
			t.Errorf("rejected %t: %s, want %s", rejected, got, want)
		}
	}
	if how := l.agent.admitter.optionsFor(urgent.Pod.UID); len(how.First) != 1 || !how.Preempts {
		t.Errorf("%+v", how)
	}
}
