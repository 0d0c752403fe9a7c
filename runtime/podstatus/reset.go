package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// What a container is shown with whose records a restart of all containers has taken away
// (kubelet: RestartingAllContainers).
const (
	restartingAll     = "RestartingAllContainers"
	restartingAllText = "The container is removed because RestartAllContainers in place"
)

// wasReset reports whether podctl took away the records of a container to restart all, and
// it ran before: it has left a log.
func (r *reporter) wasReset(ref podspec.ContainerRef) bool {
	last := r.Observed.Memory.LastRun
	switch {
	case last == nil || last.Sandbox != r.Active || !slices.Contains(last.Reset, ref.Name):
		return false
	case r.Newest(ref.Name) != nil, ref.Type == podspec.Init && r.AnyRegular():
		return false
	}
	_, ran := r.Observed.LogAttempts[ref.Name]
	return ran
}

// followsReset reports whether a container's one record is of the run after a restart of all, which
// has taken away those before it.
func (r *reporter) followsReset(ref podspec.ContainerRef) bool {
	last := r.Observed.Memory.LastRun
	return last != nil && last.Sandbox == r.Active && slices.Contains(last.AfterReset, ref.Name) && r.Newest(ref.Name) != nil
}

// endByReset is how a run ended whose record a restart of all containers has taken away.
func endByReset() v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137, Reason: restartingAll, Message: restartingAllText}}
}

// resetting reports whether a restart of all containers is under way: some are still to be
// removed, or nothing has been started since.
func (r *reporter) resetting() bool {
	recorded := slices.ContainsFunc(Lasting(r.Manifest), func(ref podspec.ContainerRef) bool { return r.Newest(ref.Name) != nil })
	return !recorded || r.RestartsAll()
}

// runsAgain reports whether a pod seems to be pending only because containers were reset,
// which count as stopped and about to start again (kubelet: getPhase).
func (r *reporter) runsAgain() bool {
	if r.Phase != v1.PodPending || !slices.ContainsFunc(Lasting(r.Manifest), r.wasReset) {
		return false
	}
	t := tallyOf(r.Pod)
	for _, ref := range Lasting(r.Manifest) {
		if r.wasReset(ref) {
			t.takeBack(ref.Type)
		}
	}
	return (t.pendingSidecar == 0 || t.entered) && t.pendingInit == 0 && t.waiting == 0
}

// takeBack counts a container without records no more.
func (t *tally) takeBack(kind podspec.ContainerType) {
	switch kind {
	case podspec.Init:
		t.pendingInit--
	case podspec.Sidecar:
		t.pendingSidecar--
		t.waiting--
	case podspec.Regular:
		t.waiting--
	case podspec.Ephemeral:
	}
}
