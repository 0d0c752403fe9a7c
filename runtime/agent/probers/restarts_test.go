package probers

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// The tests of this file have the cases of the kubelet's pkg/kubelet/prober/worker_test.go about containers that end. A
// kubelet's worker continues while its container may run again. Here, the worker ends with the container, and the next
// container has its own: podstatus decides whether there is one.

func rule(action v1.ContainerRestartRuleAction, code int32) []v1.ContainerRestartRule {
	return []v1.ContainerRestartRule{{
		Action: action,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{
			Operator: v1.ContainerRestartRuleOnExitCodesOpIn,
			Values:   []int32{code},
		},
	}}
}

// trigger returns a container whose exit with code 1 restarts all containers of its pod.
func trigger(name string) v1.Container {
	return v1.Container{
		Name: name, RestartPolicy: ptr.To(v1.ContainerRestartPolicyNever),
		RestartPolicyRules: rule(v1.ContainerRestartRuleActionRestartAllContainers, 1),
	}
}

// end describes how the container of a lab ends.
type end struct {
	// policy belongs to the pod, own and rules belong to the container.
	policy v1.RestartPolicy
	own    *v1.ContainerRestartPolicy
	rules  []v1.ContainerRestartRule
	code   int32
	// beside is another container that has exited with code 1.
	beside *v1.Container
	// sidecar makes the container a sidecar. removed removes its record.
	sidecar, removed bool
	// again reports whether the container must run again.
	again bool
}

// apply ends the container of a lab, and returns whether it must run again.
func (e *end) apply(l *lab) (again bool) {
	spec := &l.seen.Desired.Pod.Spec
	spec.RestartPolicy, spec.Containers[0].RestartPolicy, spec.Containers[0].RestartPolicyRules = e.policy, e.own, e.rules
	observed := model.Observed{Containers: []model.Container{{ID: "1", Name: "a", State: model.Exited, ExitCode: e.code}}}
	if e.removed {
		observed.Containers = nil
	}
	if e.beside != nil {
		spec.Containers = append(spec.Containers, *e.beside)
		observed.Containers = append(observed.Containers, model.Container{ID: "b1", Name: e.beside.Name, State: model.Exited, ExitCode: 1})
	}
	container := &spec.Containers[0]
	if e.sidecar {
		spec.InitContainers, spec.Containers = spec.Containers, []v1.Container{{Name: "main"}}
		container = &spec.InitContainers[0]
	}
	l.seen.Running = nil
	l.Sync(l.now, l.seen)
	pod := podstatus.New(&podstatus.Input{Desired: l.seen.Desired, Observed: observed, Now: l.now})
	return pod.RestartsAll() || podstatus.RestartWanted(pod.Manifest, container, pod.Newest("a"))
}

// TestContainersThatEnd checks that an ended container is not probed, whether it must run again or not, and that its
// earlier results are dropped. If it runs again under any rule, its probes start from the beginning (kubelet:
// TestDoProbeWithContainerRestartRules, TestDoProbeWithContainerRestartAllContainers,
// TestDoProbe_TerminatedContainerWithRestartPolicyNever,
// TestDoProbe_TerminatedRestartableInitContainerWithRestartPolicyNever).
func TestContainersThatEnd(t *testing.T) {
	restart := v1.ContainerRestartRuleActionRestart
	always := ptr.To(v1.ContainerRestartPolicyAlways)
	onFailure := ptr.To(v1.ContainerRestartPolicyOnFailure)
	never := ptr.To(v1.ContainerRestartPolicyNever)
	for name, e := range map[string]end{
		"failed, restartPolicy OnFailure":    {own: onFailure, code: 1, again: true},
		"succeeded, restartPolicy OnFailure": {own: onFailure},
		"failed, restartPolicy Always":       {own: always, code: 1, again: true},
		"succeeded, restartPolicy Always":    {own: always, again: true},
		"failed, restartPolicy Never":        {own: never, code: 1},
		"succeeded, restartPolicy Never":     {own: never},
		"a restart rule that matches":        {own: never, rules: rule(restart, 1), code: 1, again: true},
		"a restart rule that does not match": {own: never, rules: rule(restart, 99), code: 1},
		"its end restarts all containers":    {own: never, rules: trigger("").RestartPolicyRules, code: 1, again: true},
		"ended by another's RestartAllContainers": {
			policy: v1.RestartPolicyNever,
			code:   137,
			beside: new(trigger("trigger")),
			again:  true,
		},
		"removed by another's RestartAllContainers": {
			policy:  v1.RestartPolicyNever,
			removed: true,
			beside:  new(trigger("trigger")),
			again:   true,
		},
		"the pod's restartPolicy Never":                 {policy: v1.RestartPolicyNever, code: 1},
		"the pod's restartPolicy Always":                {policy: v1.RestartPolicyAlways, again: true},
		"a sidecar under the pod's restartPolicy Never": {policy: v1.RestartPolicyNever, own: always, sidecar: true, again: true},
	} {
		for _, kind := range model.ProbeTypes() {
			l := one(t, kind, every(10))
			l.ticks(1)
			asks, _ := l.Next(l.now)
			again := e.apply(l)
			if again != e.again {
				t.Errorf("%s: runs again %t", name, again)
			}
			for _, ask := range asks {
				if change := l.answer(ask, "Success"); change.NeedsWrite() || change.NeedsPass {
					t.Errorf("%s, %s: an answer of the ended container: %+v", name, kind, change)
				}
			}
			if asks, wake := l.Next(l.now); len(asks) > 0 || !wake.IsZero() || len(l.Verdicts()) > 0 {
				t.Errorf("%s, %s: asked %v, wakes at %s, knows %+v", name, kind, asks, wake, l.Verdicts())
			}
			if again {
				l.restart("2")
				l.want(kind, model.InitialProbe(kind).Result, 0, name+", runs again")
				if l.tick(); l.record(kind).Result != good {
					t.Errorf("%s, %s: asked again it is %+v", name, kind, l.record(kind))
				}
			}
		}
	}
}

// TestThresholdsAcrossRestarts checks that the results of one container do not count for the next. A kubelet carries
// the series of results over (worker.resultRun), as docs/differences.md notes.
func TestThresholdsAcrossRestarts(t *testing.T) {
	for _, kind := range model.ProbeTypes() {
		l := one(t, kind, every(10))
		l.fails[kind] = true
		for _, id := range []string{"2", "3"} {
			l.ticks(2)
			l.want(kind, model.InitialProbe(kind).Result, 2, "two failures of three")
			l.restart(id)
			l.want(kind, model.InitialProbe(kind).Result, 0, "another container")
		}
		l.ticks(3)
		if r := l.record(kind); r.Result != bad || r.OnHold != (kind != model.Readiness) {
			t.Errorf("%s, three failures of the third container: %+v", kind, r)
		}
	}
	l := one(t, model.Readiness, with(every(10), func(p *v1.Probe) { p.SuccessThreshold = 2 }))
	for _, id := range []string{"2", "3"} {
		l.ticks(1)
		l.want(model.Readiness, bad, 1, "one success of two")
		l.restart(id)
	}
	l.ticks(2)
	l.want(model.Readiness, good, 2, "two successes of the third container")
}

// TestVerdictOfANewContainer checks that a container with another ID starts with the verdict of a new container and
// with the initial delay (kubelet: doProbe sets the initial value).
func TestVerdictOfANewContainer(t *testing.T) {
	for _, kind := range model.ProbeTypes() {
		for _, fails := range []bool{true, false} {
			l := one(t, kind, with(every(10), func(p *v1.Probe) { p.FailureThreshold, p.InitialDelaySeconds = 1, 5 }))
			l.fails[kind] = fails
			l.advance()
			l.tick()
			if r := l.record(kind); (r.Result == bad) != fails {
				t.Fatalf("%s, fails %t: %+v", kind, fails, r)
			}
			// The checkpoint has the verdict of the earlier container under its ID.
			l.restart("2")
			l.want(kind, model.InitialProbe(kind).Result, 0, "another container")
			if ran := l.tick(); len(ran) > 0 {
				t.Errorf("%s: asked during its delay", kind)
			}
			began := l.now
			l.advance()
			if ran := l.tick(); len(ran) != 1 || l.now.Sub(began) != 5*time.Second {
				t.Errorf("%s: %d asked after %s", kind, len(ran), l.now.Sub(began))
			}
		}
	}
}
