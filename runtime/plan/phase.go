package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// tally counts the containers of a pod by what they are doing; the phase follows
// from it (kubelet: getPhase).
type tally struct {
	pendingInit, pendingSidecar, failedInit       int
	waiting, running, unknown, stopped, succeeded int
	// restartable counts stopped containers that will run again.
	restartable int
}

// phaseOf is the pod's phase as its records show it.
func phaseOf(v *view) v1.PodPhase {
	if done := v.completion(); done != nil {
		return done.Phase
	}
	t := v.tally()
	switch {
	case t.failedInit > 0:
		return v1.PodFailed
	case t.pendingInit > 0, t.pendingSidecar > 0 && !v.initialised():
		return v1.PodPending
	case t.waiting > 0:
		return v1.PodPending
	case t.running > 0 && t.unknown == 0:
		return v1.PodRunning
	case t.running == 0 && t.stopped > 0 && t.unknown == 0:
		return t.stoppedPhase()
	}
	return v1.PodPending
}

func (t *tally) stoppedPhase() v1.PodPhase {
	switch {
	case t.restartable > 0:
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// completion is the journal's memory of a pod that finished. It holds as long as
// the manifest does not ask to run for ever; records that were removed since do
// not make the pod run again.
func (v *view) completion() *model.Completion {
	if v.pod.Spec.RestartPolicy == v1.RestartPolicyAlways {
		return nil
	}
	return v.obs.Memory.Completion
}

// initialised tells that a regular container has a record in the active
// sandbox.
func (v *view) initialised() bool {
	for _, ref := range podspec.RegularContainers(v.pod) {
		if v.current(ref.Name) != nil {
			return true
		}
	}
	return false
}

func (v *view) tally() *tally {
	t := &tally{}
	for _, ref := range podspec.InitContainers(v.pod) {
		status := v.containerStatus(ref)
		if ref.Type == podspec.Sidecar {
			t.addSidecar(&status)
		} else {
			t.addInit(v, ref, &status)
		}
	}
	for _, ref := range podspec.RegularContainers(v.pod) {
		status := v.containerStatus(ref)
		t.addRegular(v, ref, &status)
	}
	return t
}

func (t *tally) addInit(v *view, ref podspec.ContainerRef, s *v1.ContainerStatus) {
	ended := lastEnd(s)
	switch {
	case ended == nil, v.awaitsRestart(ref.Name):
		t.pendingInit++
	case ended.ExitCode != 0 && !restartAfter(v.pod, ref.Container, ended.ExitCode):
		t.failedInit++
	}
}

// lastEnd is how a container ended that is not running now; nil when it runs, or
// never ended.
func lastEnd(s *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if s.State.Terminated == nil && s.State.Waiting != nil {
		return s.LastTerminationState.Terminated
	}
	return s.State.Terminated
}

func (t *tally) addSidecar(s *v1.ContainerStatus) {
	switch {
	case s.State.Running != nil:
		t.running++
		if s.Started == nil || !*s.Started {
			t.pendingSidecar++
		}
	case s.State.Terminated != nil:
	case s.State.Waiting != nil && s.LastTerminationState.Terminated != nil:
	case s.State.Waiting != nil:
		t.pendingSidecar++
		t.waiting++
	default:
		t.pendingSidecar++
		t.unknown++
	}
}

func (t *tally) addRegular(v *view, ref podspec.ContainerRef, s *v1.ContainerStatus) {
	ended := lastEnd(s)
	switch {
	case s.State.Running != nil:
		t.running++
	case v.awaitsRestart(ref.Name):
		t.stopped++
		t.restartable++
	case ended != nil:
		t.stopped++
		if s.State.Terminated != nil && ended.ExitCode == 0 {
			t.succeeded++
		}
		if restartAfter(v.pod, ref.Container, ended.ExitCode) {
			t.restartable++
		}
	case s.State.Waiting != nil:
		t.waiting++
	default:
		t.unknown++
	}
}

// phaseTerminal tells that the pod has finished, or has run out of its time.
func (v *view) phaseTerminal() bool {
	return v.phase == v1.PodSucceeded || v.phase == v1.PodFailed || v.deadlineExceeded()
}

// deadlineExceeded tells that activeDeadlineSeconds have passed since the pod
// was applied first.
func (v *view) deadlineExceeded() bool {
	deadline := v.pod.Spec.ActiveDeadlineSeconds
	started := v.startTime()
	return deadline != nil && !started.IsZero() && v.now.Sub(started) >= model.Seconds(*deadline)
}
