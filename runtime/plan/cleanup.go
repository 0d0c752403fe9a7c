package plan

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// leftovers are records that the pod as it is wanted has no use for: containers
// which left the manifest, and such as an interrupted pass created and never
// started.
func (v *view) leftovers() []*model.Container {
	var records []*model.Container
	for _, c := range v.containers {
		if v.leftManifest(c) || (c.State == model.Created && c.SpecHash != "" && !c.Debug) {
			records = append(records, c)
		}
	}
	return records
}

// leftManifest tells that nobody wants a container. One that podctl debug added is
// wanted for as long as its sandbox lives.
func (v *view) leftManifest(c *model.Container) bool {
	_, wanted := podspec.FindContainer(v.pod, c.Name)
	return !wanted && (!c.Debug || c.SandboxID != v.active)
}

// removeLeftovers stops and removes leftover records, and with a sandbox that is
// replaced all init containers, which run again.
func (b *builder) removeLeftovers() {
	for _, c := range b.d.removed {
		reason, message := model.NeverStarted, "was created and never started"
		if b.v.leftManifest(c) {
			reason, message = model.RemovedFromSpec, "is no longer in the manifest"
		}
		if c.State == model.Running && !b.d.killPod {
			b.stopContainer(kill{container: c, reason: reason, message: message}, nil)
		}
		b.removeContainer(c, after(b.stops, b.endsOfRecord(c.ID)), reason, message)
	}
	if b.d.killPod && b.d.createSandbox {
		b.purgeInit()
	}
}

// purgeInit removes every record of the init containers: in the new sandbox they
// all run again (kubelet: purgeInitContainers).
func (b *builder) purgeInit() {
	for _, ref := range podspec.InitContainers(b.v.pod) {
		for _, c := range b.v.containers {
			if c.Name == ref.Name && !b.removesContainer(c.ID) {
				b.removeContainer(c, b.stops, model.SandboxReplaced, "runs again in the new sandbox")
			}
		}
	}
}

func (b *builder) removeContainer(c *model.Container, waits []string, reason model.Reason, message string) {
	ref, ok := podspec.FindContainer(b.v.pod, c.Name)
	step := Step{
		ID: byID("remove", c.ID), Kind: RemoveContainer, After: after(waits), OnFailure: Continue,
		Container: c.Name, ContainerID: c.ID, Attempt: c.RestartCount, Reason: reason, Message: message,
	}
	if ok {
		step.ContainerType = ref.Type
	}
	b.add(step)
}

func (b *builder) removesContainer(id string) bool {
	return slices.ContainsFunc(b.p.Steps, func(s Step) bool { return s.Kind == RemoveContainer && s.ContainerID == id })
}

func (b *builder) endsOfRecord(id string) []string {
	var ids []string
	for i := range b.p.Steps {
		if b.p.Steps[i].ContainerID == id {
			ids = append(ids, b.p.Steps[i].ID)
		}
	}
	return ids
}

// sweep removes old sandboxes in which no record is left. The newest sandbox
// stays: its attempt is the next one's base (kubelet: evictSandboxes).
func (b *builder) sweep() {
	if b.d.terminal {
		return
	}
	for i := range b.v.sandboxes {
		s := &b.v.sandboxes[i]
		newest := i == 0 && !b.d.createSandbox
		if newest || (s.State == model.SandboxReady && !b.d.killPod) || !b.emptied(s.ID) {
			continue
		}
		b.add(Step{
			ID: byID("remove-sandbox", s.ID), Kind: RemoveSandbox, SandboxID: s.ID, Attempt: s.Attempt,
			After: after([]string{b.sandbox}, b.endsIn(s.ID)), OnFailure: Continue,
			Reason: model.Superseded, Message: "an older sandbox without containers",
		})
	}
}

// emptied tells that every record of a sandbox is removed by this plan.
func (b *builder) emptied(sandboxID string) bool {
	for _, c := range b.v.containers {
		if c.SandboxID == sandboxID && !b.removesContainer(c.ID) {
			return false
		}
	}
	return true
}

func (b *builder) endsIn(sandboxID string) []string {
	ids := slices.Clone(b.stops)
	for _, c := range b.v.containers {
		if c.SandboxID == sandboxID {
			ids = append(ids, b.endsOfRecord(c.ID)...)
		}
	}
	return ids
}
