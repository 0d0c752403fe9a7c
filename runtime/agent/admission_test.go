package agent

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/plan"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// admissionLab returns an agent that admits pods on a machine with four cores.
func admissionLab(t *testing.T) (*lab, *lines) {
	t.Helper()
	l, log := newLab(t), &lines{}
	l.admission, l.log = &admission.Settings{MaxPods: 110}, slog.NewTextHandler(log, nil)
	l.node.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}
	return l, log
}

// sized returns a pod of the source that requests the given number of cores.
func (l *lab) sized(name, cores string) *podspec.Desired {
	l.t.Helper()
	text := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 1, containers: [
		{name: a, image: "i:1", resources: {requests: {cpu: %s}}}]}}`, name, cores)
	m, err := load.Load(l.t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		l.t.Fatal(err, m.Err())
	}
	m.Pods[0].Owner = "channel"
	return m.Pods[0]
}

// status returns the agent's status of a pod. It is nil if the agent does not list the pod.
func (l *lab) status(a *Agent, name string) *api.Pod {
	l.t.Helper()
	s, err := a.Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range s.Pods {
		if s.Pods[i].Name == name {
			return &s.Pods[i]
		}
	}
	return nil
}

// checkpoint returns the stored state of a pod.
func (l *lab) checkpoint(name string) *model.Memory {
	l.t.Helper()
	c, err := l.layout.Pod(podspec.UID("default", name)).Checkpoint().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	return &c.Memory
}

// rejected reports whether a pod is rejected in the status and in its checkpoint.
func (l *lab) rejected(a *Agent, name string) bool {
	p := l.status(a, name)
	return p != nil && p.Rejection != nil && p.Rejection.Reason == "OutOfcpu" && l.checkpoint(name).Rejection != nil
}

// TestAdmission checks two pods that do not fit together. The first runs and the second fails, also with the next
// agent. A smaller second pod runs. An edit that does not fit is applied only when resources are free. Running pods are
// not touched.
func TestAdmission(t *testing.T) {
	l, log := admissionLab(t)
	c := newChannel()
	a, stop := l.run(c)
	c.updates <- []*podspec.Desired{l.sized("one", "3"), l.sized("two", "2")}
	l.until("two is rejected", func() bool { return l.rejected(a, "two") })
	l.until("one runs", func() bool { return l.running()["one"] != "" })
	ids, why := l.running(), *l.checkpoint("two").Rejection
	if why.Message != "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000" ||
		log.count("pod rejected") != 1 {
		t.Errorf("%+v, %d lines", why, log.count("pod rejected"))
	}
	events := func() (n int) {
		h, err := l.layout.Pod(podspec.UID("default", "two")).History().Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.Events {
			if e.Reason == "OutOfcpu" && e.Message == why.Message {
				n += e.Count
			}
		}
		return n
	}
	if events() != 1 {
		t.Errorf("%d events", events())
	}
	stop()

	a, stop = l.run(c)
	c.updates <- []*podspec.Desired{l.sized("one", "3"), l.sized("two", "2")}
	l.until("two stays rejected", func() bool { return l.rejected(a, "two") })
	if now := l.checkpoint("two").Rejection; !now.At.Equal(why.At) || events() != 1 || log.count("pod rejected") != 1 {
		t.Errorf("after another rejection: %+v, %d events", now, events())
	}
	c.updates <- []*podspec.Desired{l.sized("one", "3"), l.sized("two", "1")}
	l.until("two runs", func() bool { return l.running()["two"] != "" })
	if l.checkpoint("two").Rejection != nil || l.running()["one"] != ids["one"] {
		t.Error("one was restarted, or two is rejected")
	}

	ids = l.running()
	c.updates <- []*podspec.Desired{l.sized("one", "3"), l.sized("two", "2")}
	l.until("the edit waits", func() bool {
		return strings.Contains(strings.Join(l.status(a, "two").Waiting, ""), "the edit is not applied")
	})
	if cpu := l.checkpoint("two").Applied.Pod.Spec.Containers[0].Resources.Requests.Cpu(); cpu.Value() != 1 ||
		l.running()["two"] != ids["two"] {
		t.Errorf("applied cpu %s, running %v", cpu, l.running())
	}
	c.updates <- []*podspec.Desired{l.sized("two", "2")}
	l.until("it is applied once one is gone", func() bool {
		return l.checkpoint("two").Applied.Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() == 2
	})
	if l.running()["two"] != ids["two"] {
		t.Error("two was restarted")
	}
	stop()
}

// TestReloadRechecksRejectedPods checks that rejected pods get another admission check on a reload, by an agent that
// admits all, and when applied by hand.
func TestReloadRechecksRejectedPods(t *testing.T) {
	for name, ask := range map[string]func(*lab, *channel, *Agent, func()) func(){
		"a reload": func(_ *lab, _ *channel, a *Agent, stop func()) func() {
			if _, err := a.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			return stop
		},
		"another agent": func(l *lab, c *channel, _ *Agent, stop func()) func() {
			stop()
			l.admission = nil
			_, stop = l.run(c)
			c.updates <- []*podspec.Desired{l.sized("two", "2")}
			return stop
		},
		"by hand": func(l *lab, _ *channel, _ *Agent, stop func()) func() {
			if _, err := l.engine.Pods.Apply(t.Context(), l.sized("two", "2"), executor.Options{}); err != nil {
				t.Error(err)
			}
			return stop
		},
	} {
		l, _ := admissionLab(t)
		c := newChannel()
		a, stop := l.run(c)
		c.updates <- []*podspec.Desired{l.sized("one", "3"), l.sized("two", "2")}
		l.until("two is rejected", func() bool { return l.rejected(a, "two") })
		c.updates <- []*podspec.Desired{l.sized("two", "2")}
		l.until("one is gone", func() bool { return l.running()["one"] == "" && l.status(a, "one") == nil })
		if !l.rejected(a, "two") {
			t.Errorf("%s: two is no longer rejected", name)
		}
		stop = ask(l, c, a, stop)
		l.until("two runs after "+name, func() bool { return l.running()["two"] != "" })
		stop()
	}
}

// TestNewPodsWaitForEarlierPods checks that a pod is not rejected if it fits once an unwanted pod is gone. It waits for
// that.
func TestNewPodsWaitForEarlierPods(t *testing.T) {
	l, log := admissionLab(t)
	c := newChannel()
	a, stop := l.run(c)
	defer stop()
	c.updates <- []*podspec.Desired{l.sized("old", "3")}
	l.until("old runs", func() bool { return l.running()["old"] != "" })
	c.updates <- []*podspec.Desired{l.sized("new", "3")}
	l.until("new runs in the place of old", func() bool { now := l.running(); return now["new"] != "" && now["old"] == "" })
	if log.count("pod rejected") > 0 || l.checkpoint("new").Rejection != nil || l.status(a, "new").Rejection != nil {
		t.Error("the pod was rejected instead of waiting")
	}
}

// TestResourcesFreedDuringAPass checks a pass that found no free resources because it still observed a pod that has
// since gone. The pod gets another pass at once.
func TestResourcesFreedDuringAPass(t *testing.T) {
	for _, gone := range []bool{false, true} {
		l := newStill(t)
		l.agent.settings.Admission = &admission.Settings{}
		k, d := l.agent.reconciler, l.manifest("one", "new", "a", 1)
		l.agent.handleSourceUpdate(sources.Update{Source: "one", Complete: true, Pods: []*podspec.Desired{d}})
		due, _, _ := k.workers.Next(at(0))
		if len(due) != 1 {
			t.Fatalf("%d passes due", len(due))
		}
		l.agent.admitter.optionsFor("a")
		if gone {
			l.agent.admitter.handleEnd(at(1), "old")
		}
		waits := &plan.Plan{Holds: []plan.Hold{{Admission: true, Reason: "OutOfcpu"}}}
		p := &passResult{pass: due[0], outcome: &executor.Outcome{Plan: waits}}
		l.agent.admitter.handlePass(at(2), p)
		k.workers.Done(at(2), "a", p.result())
		if again, _, _ := k.workers.Next(at(2)); (len(again) == 1) != gone {
			t.Errorf("terminating %v, %d passes due", gone, len(again))
		}
	}
}

// TestResourcesFreedByAnotherPod checks that a resize that waits gets another pass once another pod requests less or has
// finished.
func TestResourcesFreedByAnotherPod(t *testing.T) {
	for name, frees := range map[string]func(p *passResult, smaller *podspec.Desired){
		"nothing": nil,
		"smaller": func(p *passResult, smaller *podspec.Desired) { p.pass.Pod, p.outcome.Desired = smaller, smaller },
		"finished": func(p *passResult, _ *podspec.Desired) {
			p.outcome.Input.Observed.Memory.Completion = &model.Completion{}
		},
	} {
		l := newStill(t)
		l.agent.settings.Admission = &admission.Settings{}
		of := func(uid, cores string) *podspec.Desired {
			d := l.manifest("one", "pod-"+uid, uid, 1)
			d.Pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cores)}
			return d
		}
		all := []*podspec.Desired{of("a", "1"), of("b", "2")}
		l.agent.handleSourceUpdate(sources.Update{Source: "one", Complete: true, Pods: all})
		due, _, _ := l.agent.reconciler.workers.Next(at(0))
		if len(due) != 2 {
			t.Fatalf("%d passes due", len(due))
		}
		l.agent.admitter.optionsFor("a")
		for i, d := range due {
			made := &plan.Plan{}
			if d.Ref.UID == "a" {
				made.Holds = []plan.Hold{{Admission: true, Reason: "OutOfcpu"}}
			}
			p := &passResult{pass: d, outcome: &executor.Outcome{Plan: made, Desired: d.Pod, Input: &plan.Input{}}}
			l.agent.reconciler.stored[d.Ref.UID] = Stored{Desired: asStored(all[i])}
			if d.Ref.UID == "b" && frees != nil {
				frees(p, of("b", "1"))
			}
			l.agent.handlePass(t.Context(), p)
		}
		if again, _, _ := l.agent.reconciler.workers.Next(at(2)); (len(again) == 1) != (frees != nil) {
			t.Errorf("%s: %d passes due", name, len(again))
		}
	}
}

// TestAdmissionOrder checks the admission order: sources in their order, then pods by name, without admitted pods.
func TestAdmissionOrder(t *testing.T) {
	l := newStill(t)
	l.agent.settings.Admission = &admission.Settings{}
	a, b, d := l.manifest("one", "a", "a1", 1), l.manifest("one", "b", "b1", 1), l.manifest("two", "d", "d1", 1)
	byHand := l.manifest("", "c", "c1", 1)
	l.has(byHand)
	if err := l.agent.reader.readAll(); err != nil {
		t.Fatal(err)
	}
	l.agent.handleSourceUpdate(sources.Update{Source: "two", Complete: true, Pods: []*podspec.Desired{d}})
	l.agent.handleSourceUpdate(sources.Update{Source: "one", Complete: true, Pods: []*podspec.Desired{a, b}, Missing: []types.UID{"b1"}})
	first := func(uid types.UID) (names string) {
		for _, p := range l.agent.admitter.optionsFor(uid).First {
			names += p.Pod.Name
		}
		return names
	}
	if got := first("a1") + "|" + first("b1") + "|" + first("d1") + "|" + first("c1"); got != "|a|ab|" {
		t.Error(got)
	}
	l.agent.reconciler.recordApplied(a)
	if got := first("a1") + "|" + first("d1"); got != "|b" {
		t.Errorf("order after a was applied: %s", got)
	}
	if terminating := l.agent.admitter.optionsFor("a1").Terminating; fmt.Sprint(terminating) != "[b1]" {
		t.Errorf("terminating: %v", terminating)
	}
}

// TestRejectedPodOfTheAPIServer checks that a pod of the API server that was rejected under other settings comes before
// no other pod, because it stays rejected.
func TestRejectedPodOfTheAPIServer(t *testing.T) {
	for owner, want := range map[string]int{"one": 1, podspec.OwnerAPI: 0} {
		l := newStill(t)
		l.agent.settings.Admission = &admission.Settings{}
		a, b := l.manifest("one", "a", "a1", 1), l.manifest("one", "b", "b1", 1)
		l.agent.handleSourceUpdate(sources.Update{Source: "one", Complete: true, Pods: []*podspec.Desired{a, b}})
		a.Owner = owner
		l.agent.reconciler.recordApplied(a)
		l.agent.reconciler.stored["a1"] = Stored{Desired: a, Rejection: &model.Rejection{Settings: "others"}}
		if first := l.agent.admitter.optionsFor("b1").First; len(first) != want {
			t.Errorf("owner %s: %d come first", owner, len(first))
		}
	}
}

// TestPodInFirstPassIsLeaving checks that a pod is leaving even if its first pass has not ended, so that other pods
// wait for its resources.
func TestPodInFirstPassIsLeaving(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a := pod("web", "a", "i:1", "dir")
	k.handleSourceUpdate(at(0), update("dir", a))
	want(t, k, 0, "sync a i:1")
	k.handleSourceUpdate(at(1), update("dir"))
	if terminating := k.terminating(); !slices.Equal(terminating, []types.UID{"a"}) {
		t.Errorf("terminating pods %v", terminating)
	}
	k.workers.Done(at(2), "a", podworkers.Result{Failed: true})
	want(t, k, 2, "terminate a")
	end(k, 3, a, podworkers.Terminate)
	if terminating := k.terminating(); len(terminating) > 0 {
		t.Errorf("terminating pods %v", terminating)
	}
}

// TestOrderOfResizes checks which waiting resizes come before that of a pod.
func TestOrderOfResizes(t *testing.T) {
	l := newStill(t)
	a, b := l.manifest("one", "a", "a1", 1), l.manifest("one", "b", "b1", 1)
	a.Pod.Spec.PriorityClassName = "system-node-critical"
	l.agent.settings.Admission = &admission.Settings{}
	l.agent.handleSourceUpdate(update("one", a, b))
	for _, d := range []*podspec.Desired{a, b} {
		l.agent.reconciler.stored[d.Pod.UID] = Stored{Desired: d}
		waits := &plan.Plan{Holds: []plan.Hold{{Resize: &model.PendingResize{}}}}
		l.agent.admitter.noteResize(modeltest.Noon(), d.Pod.UID, waits)
	}
	earlier := func(of *podspec.Desired) (names string) {
		for _, r := range l.agent.admitter.optionsFor(of.Pod.UID).Resizes {
			names += r.Wanted.Pod.Name + r.Before.Name
		}
		return names
	}
	if earlier(a) != "" || earlier(b) != "aa" {
		t.Errorf("before a: %s, before b: %s", earlier(a), earlier(b))
	}
	l.agent.admitter.noteResize(modeltest.Noon(), a.Pod.UID, &plan.Plan{})
	if got := earlier(b); got != "" {
		t.Errorf("after the first resize: %s", got)
	}
}

// TestWakeUsers checks that only pods that need devices of a resource get a pass when these change.
func TestWakeUsers(t *testing.T) {
	l := newStill(t)
	a, b := l.manifest("one", "a", "a1", 1), l.manifest("one", "b", "b1", 1)
	a.Pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	l.agent.handleSourceUpdate(update("one", a, b))
	due := func() (names string) {
		now := l.agent.now()
		begun, _, _ := l.agent.workers.Next(now)
		for _, p := range begun {
			names += p.Ref.Name
			l.agent.workers.Done(now, p.Ref.UID, podworkers.Result{})
		}
		return names
	}
	due()
	ran := make(chan struct{})
	go func() {
		(<-l.agent.inbox)()
		close(ran)
	}()
	l.agent.WakeUsers(t.Context(), "example.com/gpu")
	if <-ran; due() != "a" {
		t.Error("not only the user of the devices has a pass")
	}
}
