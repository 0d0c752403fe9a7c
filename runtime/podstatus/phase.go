package podstatus

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// phaseOf derives the pod's phase from its records. A pod that was not admitted has failed. The recorded end of a pod
// counts unless the manifest asks to run forever: removed records do not make the pod run again.
func phaseOf(p *Pod) v1.PodPhase {
	switch {
	case p.Observed.Memory.Rejection != nil:
		return v1.PodFailed
	case p.Observed.Memory.Eviction != nil:
		return evictedPhase(p)
	}
	runsForever := p.Manifest.Spec.RestartPolicy == v1.RestartPolicyAlways && p.Observed.Memory.End == nil
	if done := p.finished(); done != nil && !runsForever {
		return done.Phase
	}
	phase := tallyOf(p).phase()
	if Ended(p) && phase != v1.PodSucceeded {
		return v1.PodFailed
	}
	if phase == v1.PodPending && losesRecords(p) {
		return v1.PodRunning
	}
	return phase
}

// evictedPhase returns the phase of an evicted, preempted or shut down pod: Failed. But a pod of the API server whose
// containers have all ended with 0 has succeeded, because a kubelet derives the phase again from their ends
// (SyncTerminatingPod, getPhase). Its condition DisruptionTarget remains.
func evictedPhase(p *Pod) v1.PodPhase {
	if done := p.finished(); done != nil {
		return done.Phase
	}
	if p.Desired.FromCluster() && Ended(p) && tallyOf(p).phase() == v1.PodSucceeded {
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// losesRecords reports whether the pod ran when its deletion began. The deletion removes its records, but the pod does
// not wait to run again.
func losesRecords(p *Pod) bool {
	m := &p.Observed.Memory
	return m.Deletion != nil && m.LastRun != nil && !anyRegular(p.Manifest, func(name string) bool {
		return m.LastRun.Containers[name] == ""
	})
}

// tally counts the containers of a pod by state; the phase follows from it (kubelet: getPhase).
type tally struct {
	pod *Pod
	// entered reports whether a regular container has a record in the active sandbox.
	entered bool

	pendingInit, pendingSidecar, failedInit int
	waiting, running, stopped, succeeded    int
	// restartable counts stopped containers that will run again.
	restartable int
}

func tallyOf(p *Pod) *tally {
	t := &tally{pod: p, entered: anyRegular(p.Manifest, func(name string) bool { return p.Current(name) != nil })}
	r := &reporter{p}
	for _, ref := range Lasting(p.Manifest) {
		status := r.status(ref)
		switch ref.Type {
		case podspec.Init:
			t.addInit(ref, &status)
		case podspec.Sidecar:
			t.addSidecar(&status)
		case podspec.Regular, podspec.Ephemeral:
			t.addRegular(ref, &status)
		}
	}
	return t
}

func (t *tally) phase() v1.PodPhase {
	switch {
	case t.failedInit > 0:
		return v1.PodFailed
	case t.pendingInit > 0, t.pendingSidecar > 0 && !t.entered, t.waiting > 0:
		return v1.PodPending
	case t.running > 0:
		return v1.PodRunning
	case t.stopped > 0:
		return t.stoppedPhase()
	}
	return v1.PodPending
}

func (t *tally) stoppedPhase() v1.PodPhase {
	switch {
	case t.restartable > 0 && !Ended(t.pod):
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

func (t *tally) addInit(ref podspec.ContainerRef, s *v1.ContainerStatus) {
	ended := lastEnd(s)
	switch {
	case ended == nil, t.pod.AwaitsRestart(ref.Name):
		t.pendingInit++
	case ended.ExitCode != 0 && !RestartsAfter(t.pod.Manifest, ref.Container, ended.ExitCode):
		t.failedInit++
	}
}

// lastEnd returns the end of a container that is not running; nil if it runs or never ended.
func lastEnd(s *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if s.State.Waiting != nil {
		return s.LastTerminationState.Terminated
	}
	return s.State.Terminated
}

func (t *tally) addSidecar(s *v1.ContainerStatus) {
	switch {
	case s.State.Running != nil:
		t.running++
		if !ptr.Deref(s.Started, false) {
			t.pendingSidecar++
		}
	case lastEnd(s) == nil:
		t.pendingSidecar++
		t.waiting++
	}
}

func (t *tally) addRegular(ref podspec.ContainerRef, s *v1.ContainerStatus) {
	ended := lastEnd(s)
	switch {
	case s.State.Running != nil:
		t.running++
	case t.pod.AwaitsRestart(ref.Name), ended != nil && t.pod.starting(ref.Name):
		t.stopped++
		t.restartable++
	case ended == nil:
		t.waiting++
	default:
		t.stopped++
		if s.State.Terminated != nil && ended.ExitCode == 0 {
			t.succeeded++
		}
		if RestartsAfter(t.pod.Manifest, ref.Container, ended.ExitCode) {
			t.restartable++
		}
	}
}
