package plan

import (
	"cmp"
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// addDrift names what changed behind podctl.
func (e *explainer) addDrift() {
	if exists := e.Observed.CgroupExists; exists != nil && !*exists && !e.createSandbox && e.AnyRunning() {
		e.driftf("the pod's cgroup is missing while containers run: limits of the whole pod are not in force")
	}
	for _, c := range e.Observed.Unmanaged {
		e.driftf("container %s (%s) in the pod's sandbox is nobody's: it is left alone", cmp.Or(c.Name, "without a name"), model.ShortID(c.ID))
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
	e.drift = append(e.drift, fmt.Sprintf(format, args...))
}

// sandboxDrifted reports whether the sandbox is not as podctl left it, which explains
// everything about its containers as well.
func (e *explainer) sandboxDrifted(id string) bool {
	if id == "" {
		return false
	}
	for i := range e.Sandboxes {
		if s := &e.Sandboxes[i]; s.ID == id {
			if s.State == model.SandboxReady {
				return false
			}
			e.driftf("sandbox %s was stopped behind podctl, or by a restart of the machine", model.ShortID(id))
			return true
		}
	}
	e.driftf("sandbox %s is gone: removed behind podctl", model.ShortID(id))
	return true
}

func (e *explainer) addContainerDrift(name, id string) {
	rec := e.Find(func(c *model.Container) bool { return c.ID == id })
	switch {
	case rec == nil:
		e.driftf("container %s (%s) is gone: removed behind podctl", name, model.ShortID(id))
	case rec.State == model.Exited && endedBySignal(rec):
		e.driftf("container %s (%s) was stopped behind podctl: exit code %d", name, model.ShortID(id), rec.ExitCode)
	}
}

// endedBySignal reports whether a container was asked or made to end from outside: 128
// and SIGTERM's or SIGKILL's number, when it was not for its memory.
func endedBySignal(rec *model.Container) bool {
	return (rec.ExitCode == 143 || rec.ExitCode == 137) && !podstatus.OutOfMemory(rec)
}
