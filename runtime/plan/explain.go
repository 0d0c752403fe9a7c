package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// explainer adds the parts of a plan that need no step: kept objects, events that the pass waits for, changes made
// outside podctl, notes, and later passes.
type explainer struct {
	*podstatus.Pod
	*decision
	plan  *Plan
	steps steps
}

// explain completes the plan from a decision and its steps.
func (p *Plan) explain(pod *podstatus.Pod, d *decision) {
	e := &explainer{Pod: pod, decision: d, plan: p, steps: p.Steps}
	e.addSandboxKeep()
	e.addKeeps()
	for _, w := range d.waiting {
		e.plan.WaitingFor = append(e.plan.WaitingFor, w.String())
	}
	e.addDrift()
	e.addNotes()
	e.addLater()
}

func (e *explainer) addSandboxKeep() {
	if !e.createSandbox && !e.killPod && e.Active != "" {
		e.plan.Keeps = append(e.plan.Keeps, Keep{
			ContainerID: e.Active, State: string(model.SandboxReady),
			Reason: model.RunningAsWanted, Message: strings.Join(e.Sandboxes[0].IPs, ", "), IPs: e.Sandboxes[0].IPs,
		})
	}
}

// addKeeps lists the keeps in the order of the manifest. Each container appears once, and none that the pass stops.
func (e *explainer) addKeeps() {
	for _, ref := range podspec.Containers(e.Manifest) {
		i := slices.IndexFunc(e.keeps, func(k Keep) bool { return k.Container == ref.Name })
		if i >= 0 && !e.steps.does(StopContainer, e.keeps[i].ContainerID) {
			e.plan.Keeps = append(e.plan.Keeps, e.keeps[i])
		}
	}
}

// addLater describes later passes as far as they are certain: the init containers after the one that runs or starts
// now, then the regular ones.
func (e *explainer) addLater() {
	gate := e.gate()
	if gate == nil {
		return
	}
	var parts, names []string
	for _, ref := range podspec.InitContainers(e.Manifest)[gate.Index+1:] {
		parts = append(parts, string(ref.Type)+" "+ref.Name)
	}
	for _, ref := range podspec.RegularContainers(e.Manifest) {
		if !e.SucceededForGood(ref) {
			names = append(names, ref.Name)
		}
	}
	if len(names) > 0 {
		parts = append(parts, strings.Join(names, ", "))
	}
	if len(parts) > 0 {
		e.plan.Later = []string{fmt.Sprintf("%s (when %s)", strings.Join(parts, ", then "), gateText(gate))}
	}
}

// gate returns the last init container that starts, runs or is held in this pass while regular containers have to wait;
// nil if there is none.
func (e *explainer) gate() *podspec.ContainerRef {
	if e.terminal || len(e.regulars) > 0 || (e.Initialised() && !e.createSandbox) {
		return nil
	}
	for _, ref := range slices.Backward(podspec.InitContainers(e.Manifest)) {
		if e.waitsFor(ref.Name) || slices.ContainsFunc(e.inits, func(s start) bool { return s.ref.Name == ref.Name }) {
			return &ref
		}
	}
	return nil
}

func gateText(gate *podspec.ContainerRef) string {
	switch {
	case gate.Type == podspec.Init:
		return gate.Name + " has exited 0"
	case gate.StartupProbe != nil:
		return gate.Name + " has passed its startup probe"
	}
	return gate.Name + " has started"
}

// addDrift lists what changed outside podctl.
func (e *explainer) addDrift() {
	if exists := e.Observed.CgroupExists; exists != nil && !*exists && !e.createSandbox && e.AnyRunning() {
		e.driftf("the pod's cgroup is missing while containers run: limits of the whole pod have no effect")
	}
	for _, c := range e.Observed.Unmanaged {
		e.driftf("container %s (%s) in the pod's sandbox is unmanaged: podctl does not change it",
			cmp.Or(c.Name, "without a name"), model.ShortID(c.ID))
	}
	last := e.Observed.Memory.LastRun
	if last == nil || e.terminal || e.sandboxDrifted(last.Sandbox) {
		return
	}
	for _, ref := range podspec.Containers(e.Manifest) {
		if id := last.Containers[ref.Name]; id != "" {
			e.addContainerDrift(ref.Name, id)
		}
	}
}

func (e *explainer) driftf(format string, args ...any) {
	e.plan.Drift = append(e.plan.Drift, fmt.Sprintf(format, args...))
}

// sandboxDrifted reports whether the sandbox was stopped or removed outside podctl. That also explains the state of its
// containers.
func (e *explainer) sandboxDrifted(id string) bool {
	if id == "" {
		return false
	}
	for i := range e.Sandboxes {
		if s := &e.Sandboxes[i]; s.ID == id {
			if s.State == model.SandboxReady {
				return false
			}
			e.driftf("sandbox %s was stopped outside podctl, or by a restart of the machine", model.ShortID(id))
			return true
		}
	}
	e.driftf("sandbox %s is gone: removed outside podctl", model.ShortID(id))
	return true
}

func (e *explainer) addContainerDrift(name, id string) {
	rec := e.Find(func(c *model.Container) bool { return c.ID == id })
	switch {
	case rec == nil:
		e.driftf("container %s (%s) is gone: removed outside podctl", name, model.ShortID(id))
	case rec.State == model.Exited && endedBySignal(rec):
		e.driftf("container %s (%s) was stopped outside podctl: exit code %s",
			name, model.ShortID(id), model.ExitText(rec.ExitCode))
	}
}

// endedBySignal reports whether a container was ended from outside: its exit code is 128 plus the number of SIGTERM or
// SIGKILL, and it did not run out of memory.
func endedBySignal(rec *model.Container) bool {
	return (rec.ExitCode == 143 || rec.ExitCode == 137) && !podstatus.OutOfMemory(rec)
}
