package podstatus

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// reporter converts the state of a pod to the status that a kubelet reports.
type reporter struct{ *Pod }

// status returns the part of a container's status that phases depend on, from its two newest records (kubelet:
// convertToAPIContainerStatuses). While the postStart hook of a container runs, the status is the one from before its
// start, as in a kubelet.
func (r *reporter) status(ref podspec.ContainerRef) v1.ContainerStatus {
	newest := r.newestStarted(ref.Name)
	if newest == nil {
		if s, ok := r.fromCheckpoint(ref); ok {
			return s
		}
	}
	s := v1.ContainerStatus{Name: ref.Name, Image: ref.Image, State: r.stateWithout(ref)}
	if newest != nil {
		r.fillFrom(&s, newest)
	}
	isPrevious := func(c *model.Container) bool { return c.Name == ref.Name && c != newest && !c.Starting }
	if previous := r.Find(isPrevious); previous != nil {
		s.LastTerminationState = r.stateOf(previous)
	}
	if !r.starting(ref.Name) {
		r.addStartError(ref, newest, &s)
	}
	r.addReadiness(ref, newest, &s)
	return s
}

// newestStarted returns the latest record of that name whose postStart hook, if there is one, has finished.
func (r *reporter) newestStarted(name string) *model.Container {
	return r.Find(func(c *model.Container) bool { return c.Name == name && !c.Starting })
}

// shown returns the complete status of one container, including what podctl remembers of its past.
func (r *reporter) shown(ref podspec.ContainerRef) v1.ContainerStatus {
	s := r.status(ref)
	r.addResources(&s, ref)
	if r.wasReset(ref) {
		s.RestartCount = restartCount(r.NextAttempt(ref.Name))
		s.LastTerminationState = endByReset()
	}
	if r.followsReset(ref) && s.LastTerminationState.Terminated == nil {
		s.LastTerminationState = endByReset()
	}
	return s
}

func (r *reporter) fillFrom(s *v1.ContainerStatus, c *model.Container) {
	s.State = r.stateOf(c)
	s.RestartCount = restartCount(c.RestartCount)
	s.ContainerID = containerID(&r.Observed.Runtime, c)
	s.ImageID = c.ImageRef
	if c.Image != "" {
		s.Image = c.Image
	}
}

// restartCount limits a count, because values of other programs must not make it negative.
func restartCount(n uint32) int32 { return int32(min(n, 1<<30)) }

func containerID(runtime *model.Runtime, c *model.Container) string {
	return fmt.Sprintf("%s://%s", runtime.Name, c.ID)
}

// stateOf returns the state of one record.
func (r *reporter) stateOf(c *model.Container) v1.ContainerState {
	switch c.State {
	case model.Running:
		return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt)}}
	case model.Exited:
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode:    c.ExitCode,
			Reason:      c.Reason,
			Message:     c.Message,
			StartedAt:   metav1.NewTime(orEpoch(c.StartedAt)),
			FinishedAt:  metav1.NewTime(c.FinishedAt),
			ContainerID: containerID(&r.Observed.Runtime, c),
		}}
	case model.Created, model.Unknown:
	}
	return waiting("", "")
}

// orEpoch returns the time of a container that never started: the CRI's zero, as in a kubelet.
func orEpoch(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(0, 0)
	}
	return t
}

// stateWithout returns the state of a container without any record.
func (r *reporter) stateWithout(ref podspec.ContainerRef) v1.ContainerState {
	switch {
	case ref.Type == podspec.Init && r.AnyRegular():
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: "Completed",
			Message: "Unable to get init container status from container runtime and pod has been initialized, " +
				"treat it as exited normally",
		}}
	case r.wasReset(ref) && r.resetting():
		return waiting(restartingAll, restartingAllText)
	}
	return StateBeforeStart(r.Manifest)
}

// StateBeforeStart returns the state of a container of a pod before its first start (kubelet:
// convertToAPIContainerStatuses, defaultWaitingState).
func StateBeforeStart(pod *v1.Pod) v1.ContainerState {
	if len(pod.Spec.InitContainers) > 0 {
		return waiting("PodInitializing", "")
	}
	return waiting("ContainerCreating", "")
}

func waiting(reason, message string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// addStartError shows why a container that should run does not. The last failure to start it becomes the waiting
// reason, and its previous end becomes the last state.
func (r *reporter) addStartError(ref podspec.ContainerRef, newest *model.Container, s *v1.ContainerStatus) {
	failure, ok := r.startError(ref, newest)
	if !ok || r.Observed.Memory.End != nil || !RestartWanted(r.Manifest, ref.Container, newest) {
		return
	}
	// In the kubelet an init container or sidecar that exited 0 does not count as starting again
	// (convertToAPIContainerStatuses).
	inits := ref.Type == podspec.Init || ref.Type == podspec.Sidecar
	if inits && newest != nil && newest.State == model.Exited && newest.ExitCode == 0 {
		return
	}
	if s.State.Terminated != nil {
		s.LastTerminationState = s.State
	}
	s.State = waiting(string(failure.Reason), failure.Message)
}

// startError returns the failure to show: the current restart delay, a pull that is not retried yet, or the last
// failure to start the container.
func (r *reporter) startError(ref podspec.ContainerRef, newest *model.Container) (model.StartError, bool) {
	if newest != nil && newest.State == model.Exited && ref.Type != podspec.Ephemeral {
		if d, held := r.Delay(ref); held && !d.Estimated {
			pod := r.Manifest
			text := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				d.Duration, ref.Name, pod.Name, pod.Namespace, pod.UID)
			return model.StartError{Reason: model.CrashLoopBackOff, Message: text}, true
		}
	}
	failure, ok := r.Observed.Memory.StartErrors[ref.Name]
	if ok && failure.Holds(r.Now) {
		image := cmp.Or(failure.Image, ref.Image) // it may be the image of a volume
		failure.Message = fmt.Sprintf("Back-off pulling image %q: %s: %s", image, failure.Reason, failure.Message)
		failure.Reason = model.ImagePullBackOff
	}
	return failure, ok
}

func (r *reporter) addReadiness(ref podspec.ContainerRef, newest *model.Container, s *v1.ContainerStatus) {
	running := newest != nil && newest.State == model.Running && s.State.Running != nil
	switch ref.Type {
	case podspec.Init:
		s.Started = &running
		s.Ready = s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		return
	case podspec.Ephemeral:
		return
	case podspec.Sidecar, podspec.Regular:
	}
	started := running && r.passed(ref.Container, newest, model.Startup)
	s.Started = &started
	s.Ready = started && r.passed(ref.Container, newest, model.Readiness)
}

// passed reports whether a container has no probe of that type, or one whose verdict is success.
func (r *reporter) passed(spec *v1.Container, c *model.Container, t model.ProbeType) bool {
	return model.ProbeOf(spec, t) == nil || r.Verdict(spec, c, t).Result == model.ProbeSuccess
}
