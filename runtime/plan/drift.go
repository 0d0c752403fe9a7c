package plan

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// addDrift names what changed behind podctl.
func (b *builder) addDrift() {
	if exists := b.v.obs.CgroupExists; exists != nil && !*exists && !b.d.createSandbox && b.v.anyRunning() {
		b.drift("the pod's cgroup is missing while containers run: limits of the whole pod are not in force")
	}
	for _, s := range b.v.obs.Unmanaged {
		b.drift("container %s (%s) in the pod's sandbox is nobody's: it is left alone", firstOf(s.Name, "without a name"), model.ShortID(s.ID))
	}
	if left := b.v.obs.Memory.LastRun; left != nil && !b.d.terminal && !b.sandboxDrift(left.Sandbox) {
		for _, ref := range podspec.Containers(b.v.pod) {
			if id := left.Containers[ref.Name]; id != "" {
				b.containerDrift(ref.Name, id)
			}
		}
	}
}

func (b *builder) drift(format string, args ...any) {
	b.p.Drift = append(b.p.Drift, fmt.Sprintf(format, args...))
}

// sandboxDrift tells that the sandbox is not as podctl left it, which explains
// everything about its containers as well.
func (b *builder) sandboxDrift(id string) bool {
	if id == "" {
		return false
	}
	for i := range b.v.sandboxes {
		if s := &b.v.sandboxes[i]; s.ID == id {
			if s.State == model.SandboxReady {
				return false
			}
			b.drift("sandbox %s was stopped behind podctl, or by a restart of the machine", model.ShortID(id))
			return true
		}
	}
	b.drift("sandbox %s is gone: removed behind podctl", model.ShortID(id))
	return true
}

func (b *builder) containerDrift(name, id string) {
	c := b.v.find(func(c *model.Container) bool { return c.ID == id })
	switch {
	case c == nil:
		b.drift("container %s (%s) is gone: removed behind podctl", name, model.ShortID(id))
	case c.State == model.Exited && endedBySignal(c):
		b.drift("container %s (%s) was stopped behind podctl: exit code %d", name, model.ShortID(id), c.ExitCode)
	}
}

// endedBySignal tells that a container was asked or made to end from outside: 128
// and SIGTERM's or SIGKILL's number, when it was not for its memory.
func endedBySignal(c *model.Container) bool {
	return (c.ExitCode == 143 || c.ExitCode == 137) && c.Reason != "OOMKilled"
}
