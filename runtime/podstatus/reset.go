package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// The status of a container whose records a restart of all containers removed (kubelet: RestartingAllContainers).
const (
	restartingAll     = "RestartingAllContainers"
	restartingAllText = "The container is removed because RestartAllContainers in place"
)

// wasReset reports whether a restart of all containers removed the records of a container that ran before: it has left
// a log.
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

// followsReset reports whether a container's only record is the run after a restart of all containers, which removed
// earlier ones.
func (r *reporter) followsReset(ref podspec.ContainerRef) bool {
	last := r.Observed.Memory.LastRun
	return last != nil && last.Sandbox == r.Active &&
		slices.Contains(last.AfterReset, ref.Name) && r.Newest(ref.Name) != nil
}

// endByReset returns the end of a run whose record a restart of all containers removed.
func endByReset() v1.ContainerState {
	return v1.ContainerState{
		Terminated: &v1.ContainerStateTerminated{ExitCode: 137, Reason: restartingAll, Message: restartingAllText},
	}
}

// resetting reports whether a restart of all containers is in progress: some records are still to be removed, or
// nothing has started since.
func (r *reporter) resetting() bool {
	recorded := slices.ContainsFunc(Lasting(r.Manifest), func(ref podspec.ContainerRef) bool {
		return r.Newest(ref.Name) != nil
	})
	return !recorded || r.RestartsAll()
}

// runsAgain reports whether a pod seems to be pending only because containers were reset. They count as stopped and
// about to start again (kubelet: getPhase).
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

// takeBack subtracts a container without records.
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
