package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// startContainers adds the starts of this pass. Init containers and sidecars
// follow one another; regular containers may overlap, except that one with a
// postStart hook holds back those after it, as the kubelet's sequence does. A
// debug container comes after the container whose processes it joins.
func (b *builder) startContainers() {
	var lastInit, lastHook string
	started := map[string]string{}
	for _, s := range b.starts {
		switch s.ref.Type {
		case podspec.Init, podspec.Sidecar:
			lastInit = b.startContainer(s, lastInit)
		case podspec.Regular:
			id := b.startContainer(s, firstOf(lastHook, lastInit))
			if model.HandlerName(postStart(s.ref)) != "" {
				lastHook = id
			}
			started[s.ref.Name] = id
		case podspec.Ephemeral:
			b.startContainer(s, started[s.ref.Target])
		}
	}
}

func (b *builder) startContainer(s start, waits string) string {
	name := s.ref.Name
	removed, proven, exits := b.endsOf(name, RemoveContainer), b.createAfter(name), b.exits()
	id := b.add(Step{
		ID: "start-" + name, Kind: StartContainer, OnFailure: startFailure(s.ref),
		After:       after([]string{b.sandbox, b.checks[name], waits}, exits, removed),
		CreateAfter: proven, AfterExit: exits,
		Container: name, ContainerType: s.ref.Type, Image: s.ref.Image,
		SandboxID: b.targetSandbox(), Attempt: b.v.nextAttempt(name),
		PostStart: model.HandlerName(postStart(s.ref)),
		Reason:    s.reason, Message: s.message, Changes: s.diff.changes, Unchanged: s.diff.unchanged,
	})
	ends := after(b.endsOf(name, StopContainer), removed)
	if proven != nil {
		// What the stop is about to leave is the newest dead one.
		ends = proven
	}
	b.removeSurplus(name, ends)
	return id
}

// exits are the stops of a sandbox that stays. All that stops has ended before anything
// starts, which may need its ports or its memory (kubelet: SyncPod, step 3).
func (b *builder) exits() []string {
	if b.d.createSandbox {
		return nil
	}
	return after(b.stepsOf(StopContainer))
}

// createAfter are the steps after which a replacement can be created, beside the stop of
// what it replaces: its proof. Nothing else is created before its turn.
func (b *builder) createAfter(name string) []string {
	if b.d.createSandbox || len(b.endsOf(name, StopContainer)) == 0 {
		return nil
	}
	return after([]string{b.checks[name]})
}

// startFailure is the kubelet's rule: a plain init container that cannot start
// ends the pass, any other lets its siblings start.
func startFailure(ref podspec.ContainerRef) OnFailure {
	if ref.Type == podspec.Init {
		return Abort
	}
	return Continue
}

// targetSandbox is the sandbox that is there; empty when the plan makes one.
func (b *builder) targetSandbox() string {
	if b.d.createSandbox {
		return ""
	}
	return b.d.sandboxID
}

// endsOf are the steps of some kinds, of those that stop or remove what bears the name
// now.
func (b *builder) endsOf(name string, kinds ...Kind) []string {
	var ids []string
	for i := range b.p.Steps {
		s := &b.p.Steps[i]
		if s.Container == name && slices.Contains(kinds, s.Kind) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// removeSurplus removes the dead records of a container except the newest, which
// carries the restart count on (kubelet: container garbage collection keeps one).
// No start waits for that.
func (b *builder) removeSurplus(name string, ends []string) {
	kept := false
	for _, c := range b.v.containers {
		if c.Name != name || b.removesContainer(c.ID) {
			continue
		}
		if !kept && (c.State != model.Created) {
			kept = true
			continue
		}
		if c.State == model.Exited || c.State == model.Unknown {
			b.removeContainer(c, ends, model.Superseded, fmt.Sprintf("attempt %d has a newer record", c.RestartCount))
		}
	}
}

func postStart(ref podspec.ContainerRef) *v1.LifecycleHandler {
	if ref.Lifecycle == nil {
		return nil
	}
	return ref.Lifecycle.PostStart
}
