package plan

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// starter lays out starts.
type starter struct {
	*layout
	proof   *proof
	sandbox []string
}

// startContainers adds the starts of this pass. Init containers and sidecars start one after the other. Regular
// containers may overlap, except that one with a postStart hook delays those after it, as in the kubelet's sequence. A
// debug container comes after the container whose processes it joins.
func (l *layout) startContainers(proof *proof, sandbox []string) {
	s := starter{layout: l, proof: proof, sandbox: sandbox}
	before := ""
	started := map[string]string{}
	for _, one := range l.starts {
		switch one.ref.Type {
		case podspec.Init, podspec.Sidecar:
			before = s.start(one, before)
		case podspec.Regular:
			id := s.start(one, before)
			started[one.ref.Name] = id
			if postStart(one.ref) != "" {
				before = id
			}
		case podspec.Ephemeral:
			s.start(one, started[one.ref.Target])
		}
	}
}

func (s starter) start(one start, before string) string {
	name := one.ref.Name
	check := []string{s.proof.checks[name]}
	stops, removed := s.steps.named(StopContainer, name), s.steps.named(RemoveContainer, name)
	// A pod that grows does so before its containers.
	resized := s.steps.of(UpdatePod)
	needs := after(s.sandbox, check, []string{before}, resized)
	if !s.createSandbox {
		// In a sandbox that stays, all stops end before the first start, which may need the ports or the memory
		// (kubelet: SyncPod, step 3).
		needs = needs.with(Edge{Until: Exited}, s.steps.of(StopContainer))
	}
	needs = needs.with(Edge{}, removed)
	ends := after(stops, removed)
	hasDevices := len(s.Observed.Devices.Of(name)) > 0
	if replaces := !s.createSandbox && len(stops) > 0 && check[0] != "" && !hasDevices; replaces {
		// A replacement is created once it is checked and its attempt is free, while the old container stops. The
		// stopped container then becomes the newest dead record. One with devices is created after the stop, because
		// the plugin may reset them.
		needs, ends = needs.with(Edge{Phase: Create}, slices.Concat(check, removed, resized)), after(check)
	}
	id := s.steps.add(one.explains(Step{
		ID: "start-" + name, Kind: StartContainer, OnFailure: startFailure(one.ref), Needs: needs,
		Container: name, ContainerType: one.ref.Type, Image: one.ref.Image,
		SandboxID: s.targetSandbox(), Attempt: s.NextAttempt(name),
		PostStart: postStart(one.ref),
	}))
	s.removeSurplus(name, ends)
	return id
}

// startFailure follows the kubelet: an init container that cannot start ends the pass; with any other container, the
// others still start.
func startFailure(ref podspec.ContainerRef) OnFailure {
	if ref.Type == podspec.Init {
		return Abort
	}
	return Continue
}

// targetSandbox returns the existing sandbox; empty if the plan creates one.
func (s starter) targetSandbox() string {
	if s.createSandbox {
		return ""
	}
	return s.sandboxID
}

// removeSurplus removes the dead records of a container except the newest, which carries the restart count (kubelet:
// container garbage collection keeps one). No start waits for it.
func (s starter) removeSurplus(name string, ends Needs) {
	kept := false
	for _, rec := range s.Containers {
		switch {
		case rec.Name != name || s.steps.does(RemoveContainer, rec.ID):
		case !kept && rec.State != model.Created:
			kept = true
		case rec.State == model.Exited || rec.State == model.Unknown:
			message := fmt.Sprintf("attempt %d has a newer record", rec.RestartCount)
			why := cause{reason: model.Superseded, message: message}
			s.removeContainer(removal{why, rec}, RemoveSupersededLogs, ends)
		}
	}
}

// postStart returns the handler name of a container's hook; empty if it has none.
func postStart(ref podspec.ContainerRef) string {
	if ref.Lifecycle == nil {
		return ""
	}
	return model.HandlerName(ref.Lifecycle.PostStart)
}
