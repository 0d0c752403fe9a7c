package syncpod

import (
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// full is a pod with its own volume.
const full = "apiVersion: v1\nkind: Pod\nmetadata: {name: full}\n" +
	"spec:\n  terminationGracePeriodSeconds: 30\n  volumes: [{name: v, emptyDir: {}}]\n" +
	"  containers: [{name: a, image: 'i:1', volumeMounts: [{name: v, mountPath: /v}]}]\n"

// low is the reason of an eviction.
const low = "The node was low on resource: memory. "

// evict evicts a pod.
func (l *lab) evict(text string) *executor.Outcome {
	l.t.Helper()
	why := &model.Eviction{Message: low, Signal: "memory.available", At: l.clock.Now()}
	outcome, err := l.Apply(l.t.Context(), loadPod(l.t, text), executor.Options{Options: plan.Options{Evict: why}, Watched: true})
	if err != nil {
		l.t.Fatal(err)
	}
	return outcome
}

// next makes the pass after an eviction.
func (l *lab) next(text string) *executor.Outcome {
	l.t.Helper()
	outcome, err := l.Apply(l.t.Context(), loadPod(l.t, text), executor.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	return outcome
}

func (l *lab) checkpoint(text string) *state.Checkpoint {
	l.t.Helper()
	c, err := l.layout.Pod(loadPod(l.t, text).Pod.UID).Checkpoint().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// The steps of the two passes of an eviction.
const (
	stopsAll  = "StopContainer StopSandbox"
	takesAway = "RemoveContainer RemoveSandbox RemoveVolume RemoveCgroup"
)

// checkEvicted checks that only the record of a pod is left.
func (l *lab) checkEvicted(text string) {
	l.t.Helper()
	c, pod := l.checkpoint(text), l.layout.Pod(loadPod(l.t, text).Pod.UID)
	if c.Eviction == nil || !c.Eviction.Done ||
		c.Completion == nil || c.LastRun != nil || c.Applied == nil || snapshot.TakenBy(&c.Memory) != nil {
		l.t.Errorf("record %+v", c.Memory)
	}
	if entries, err := os.ReadDir(pod.Volumes()); len(entries) > 0 {
		l.t.Errorf("volumes are left: %v %v", entries, err)
	}
	in, _, err := l.observer.Input(l.t.Context(), model.RefOf(loadPod(l.t, text).Pod), loadPod(l.t, text), plan.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	if s := podstatus.Of(in.State()); s.Phase != "Failed" ||
		s.Reason != "Evicted" || s.Message != low || s.StartTime == nil ||
		s.ContainerStatuses[0].State.Terminated == nil {
		l.t.Errorf("status %+v", s)
	}
	again, err := l.Apply(l.t.Context(), loadPod(l.t, text), executor.Options{})
	if err != nil || len(again.Plan.Steps) > 0 || len(again.Plan.Holds) != 1 || !again.Plan.Holds[0].Blocking ||
		!strings.Contains(again.Plan.Holds[0].Message, "podctl restart default/full recreates it") {
		l.t.Errorf("an apply that changes nothing: %+v %v", again.Plan, err)
	}
}

// TestEviction checks that an evicted pod stops within a second and only its record stays. The pod is Failed until the
// user restarts it or its manifest changes. Then it starts like a new pod (kubelet:
// TestMemoryPressure_VerifyPodStatus).
func TestEviction(t *testing.T) {
	l := newLab(t, "i:1")
	l.apply(full)
	o := l.evict(full)
	if kinds(o.Plan) != stopsAll || *o.Plan.Steps[0].GracePeriodSeconds != 1 || o.Err() != nil {
		t.Errorf("steps %s, grace %d, %v", kinds(o.Plan), *o.Plan.Steps[0].GracePeriodSeconds, o.Err())
	}
	if o = l.apply(full); kinds(o.Plan) != takesAway || o.Err() != nil {
		t.Errorf("steps %s, %v", kinds(o.Plan), o.Err())
	}
	l.checkEvicted(full)
	recreated, err := l.Apply(t.Context(), loadPod(t, full), executor.Options{Options: plan.Options{Restart: []string{"a"}}})
	if err != nil || recreated.Err() != nil ||
		!strings.HasSuffix(kinds(recreated.Plan), "RunSandbox StartContainer") || recreated.Plan.Attempt != 0 {
		t.Fatalf("a restart: %s %v", kinds(recreated.Plan), err)
	}
	if c := l.checkpoint(full); c.Eviction != nil || c.LastRun == nil || c.StartTime.IsZero() || snapshot.TakenBy(&c.Memory) == nil {
		t.Errorf("record after a restart: %+v", c.Memory)
	}
	l.clock.Advance(time.Second)
	l.evict(full)
	l.apply(full)
	l.checkEvicted(full)
	edited := strings.Replace(full, "Seconds: 30", "Seconds: 31", 1)
	if o := l.apply(edited); !strings.HasSuffix(kinds(o.Plan), "RunSandbox StartContainer") || l.checkpoint(full).Eviction != nil {
		t.Errorf("an edit: %s", kinds(o.Plan))
	}
	reported := 0
	history, err := l.layout.Pod(loadPod(t, full).Pod.UID).History().Read()
	for i := range history.Events {
		if history.Events[i].Reason == "Evicted" {
			reported += max(history.Events[i].Count, 1)
		}
	}
	if err != nil || reported != 2 {
		t.Errorf("%d events %v", reported, err)
	}
}

// TestEvictionThatIsCutOff checks that the next pass continues, also one for another manifest, whose pod is created
// afterwards.
func TestEvictionThatIsCutOff(t *testing.T) {
	l := newLab(t, "i:1")
	l.apply(full)
	l.server.Fail(runtimetest.Fault{Method: "RemoveContainer", Times: 1, Err: status.Error(codes.Unknown, "busy")})
	l.evict(full)
	if o := l.next(full); o.Err() == nil || l.checkpoint(full).Eviction.Done {
		t.Fatalf("%s: %+v", kinds(o.Plan), l.checkpoint(full).Eviction)
	}
	edited := strings.Replace(full, "Seconds: 30", "Seconds: 31", 1)
	if o := l.apply(edited); kinds(o.Plan) != takesAway {
		t.Errorf("leftovers are removed first: %s", kinds(o.Plan))
	}
	l.checkEvicted(full)
	if o := l.apply(edited); !strings.HasSuffix(kinds(o.Plan), "RunSandbox StartContainer") {
		t.Errorf("the edit: %s", kinds(o.Plan))
	}
}

// TestEvictionWithFaults checks that after any failed call the next pass removes the rest, and starts nothing.
func TestEvictionWithFaults(t *testing.T) {
	for _, method := range []string{"StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox"} {
		l := newLab(t, "i:1")
		l.apply(full)
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: status.Error(codes.Unknown, "busy")})
		if o := l.evict(full); (o.Err() == nil) != strings.HasPrefix(method, "Remove") || l.checkpoint(full).Eviction.Done {
			t.Errorf("%s: %s", method, kinds(o.Plan))
		}
		for range 2 {
			if o := l.next(full); strings.Contains(kinds(o.Plan), "Start") || l.checkpoint(full).Eviction.At.IsZero() {
				t.Errorf("after %s: %s", method, kinds(o.Plan))
			}
		}
		l.checkEvicted(full)
	}
}

// TestResourcesOfPreemptedPod checks that a preempted pod uses its resources until it has ended, because a critical pod
// waits for that. Any other pod that is over uses them while its containers run.
func TestResourcesOfPreemptedPod(t *testing.T) {
	applied := loadPod(t, full)
	for _, preempted := range []bool{true, false} {
		m := &model.Memory{Applied: applied, Eviction: &model.Eviction{Preempted: preempted}}
		if taken := snapshot.TakenBy(m); (taken != nil) != preempted || preempted && !taken.Terminating {
			t.Errorf("preempted %t: %+v", preempted, taken)
		}
		m.LastRun = &model.LastRun{Containers: map[string]string{"app": "c1"}}
		if taken := snapshot.TakenBy(m); taken == nil || !taken.Terminating {
			t.Errorf("preempted %t, with a container: %+v", preempted, taken)
		}
		m.LastRun, m.Eviction.Done = nil, true
		if taken := snapshot.TakenBy(m); taken != nil {
			t.Errorf("preempted %t, at its end: %+v", preempted, taken)
		}
	}
	m := &model.Memory{
		Applied: applied, Completion: &model.Completion{Phase: "Failed"},
		LastRun: &model.LastRun{Containers: map[string]string{"app": "c1"}},
	}
	if taken := snapshot.TakenBy(m); taken == nil || !taken.Terminating {
		t.Errorf("after its deadline: %+v", taken)
	}
	m.Completion.Containers = map[string]model.ContainerEnd{"app": {}}
	if taken := snapshot.TakenBy(m); taken != nil {
		t.Errorf("after its containers have ended: %+v", taken)
	}
}
