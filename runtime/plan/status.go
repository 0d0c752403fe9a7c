package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Status is the pod's status as a kubelet would report it: phase, conditions,
// container states and addresses. It is computed from the same input as a plan
// and changes nothing.
func Status(in *Input) v1.PodStatus {
	v := newView(in)
	s := v1.PodStatus{
		Phase:    v.phase,
		QOSClass: podspec.QOSClass(v.pod),
	}
	if v.runsAgain() {
		s.Phase = v1.PodRunning
	}
	if v.deadlineExceeded() && v.phase != v1.PodSucceeded {
		s.Phase, s.Reason = v1.PodFailed, string(model.DeadlineExceeded)
		s.Message = "Pod was active on the node longer than the specified deadline"
	}
	if started := v.startTime(); !started.IsZero() {
		s.StartTime = wholeSecond(started)
	}
	v.addIPs(&s)
	for _, ref := range podspec.InitContainers(v.pod) {
		s.InitContainerStatuses = append(s.InitContainerStatuses, v.shownStatus(ref))
	}
	for _, ref := range podspec.RegularContainers(v.pod) {
		s.ContainerStatuses = append(s.ContainerStatuses, v.shownStatus(ref))
	}
	for _, ref := range podspec.EphemeralContainers(v.pod) {
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, v.shownStatus(ref))
	}
	sortByName(s.ContainerStatuses)
	sortByName(s.EphemeralContainerStatuses)
	v.truncateMessages(&s)
	v.addPodResources(&s)
	s.Conditions = v.conditions(&s)
	return s
}

// messagesMax bounds the termination messages of a whole pod, in bytes (kubelet:
// kubecontainer.MaxPodTerminationMessageLogLength).
const messagesMax = 12 << 10

func (v *view) truncateMessages(s *v1.PodStatus) {
	limit := messagesMax / max(len(podspec.Containers(v.pod)), 1)
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			truncateMessage(list[i].State.Terminated, limit)
			truncateMessage(list[i].LastTerminationState.Terminated, limit)
		}
	}
}

func truncateMessage(t *v1.ContainerStateTerminated, limit int) {
	if t != nil && len(t.Message) > limit {
		t.Message = t.Message[:limit]
	}
}

func sortByName(statuses []v1.ContainerStatus) {
	slices.SortFunc(statuses, func(a, b v1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
}

func wholeSecond(t time.Time) *metav1.Time {
	m := metav1.NewTime(t.Truncate(time.Second))
	return &m
}

// startTime is when the pod was applied first; without the journal it is when
// its oldest sandbox was created.
func (v *view) startTime() time.Time {
	if t := v.obs.Memory.StartTime; !t.IsZero() {
		return t
	}
	var oldest time.Time
	for i := range v.sandboxes {
		if t := v.sandboxes[i].CreatedAt; oldest.IsZero() || t.Before(oldest) {
			oldest = t
		}
	}
	return oldest
}

func (v *view) addIPs(s *v1.PodStatus) {
	if v.active == "" {
		return
	}
	for _, ip := range v.sandboxes[0].IPs {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

// shownStatus is the status of one container together with what no phase depends on, and
// what only podctl's memory tells of its past.
func (v *view) shownStatus(ref podspec.ContainerRef) v1.ContainerStatus {
	s := v.containerStatus(ref)
	v.addResources(&s, ref)
	if v.wasReset(ref) {
		s.RestartCount = int32(min(v.nextAttempt(ref.Name), 1<<30))
		s.LastTerminationState = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: 137, Reason: restartingAll, Message: restartingAllText,
		}}
	}
	return s
}

// containerStatus is the status of one container from its two newest records
// (kubelet: convertToAPIContainerStatuses).
func (v *view) containerStatus(ref podspec.ContainerRef) v1.ContainerStatus {
	newest, previous := v.lastTwo(ref.Name)
	s := v1.ContainerStatus{Name: ref.Name, Image: ref.Image, State: v.stateWithout(ref)}
	if newest != nil {
		v.fillFromRecord(&s, newest)
	}
	if previous != nil {
		s.LastTerminationState = v.recordState(previous)
	}
	v.addStartError(ref, newest, &s)
	v.addReadiness(ref, newest, &s)
	return s
}

func (v *view) fillFromRecord(s *v1.ContainerStatus, c *model.Container) {
	s.State = v.recordState(c)
	s.RestartCount = int32(min(c.RestartCount, 1<<30))
	s.ContainerID = v.containerID(c)
	s.ImageID = c.ImageRef
	if c.Image != "" {
		s.Image = c.Image
	}
}

// lastTwo returns the two newest records of that name.
func (v *view) lastTwo(name string) (newest, previous *model.Container) {
	for _, c := range v.containers {
		switch {
		case c.Name != name:
		case newest == nil:
			newest = c
		default:
			return newest, c
		}
	}
	return newest, nil
}

func (v *view) containerID(c *model.Container) string {
	return fmt.Sprintf("%s://%s", v.obs.Runtime.Name, c.ID)
}

// recordState is the state of one record.
func (v *view) recordState(c *model.Container) v1.ContainerState {
	switch c.State {
	case model.Running:
		return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt)}}
	case model.Exited:
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode:    c.ExitCode,
			Reason:      c.Reason,
			Message:     c.Message,
			StartedAt:   metav1.NewTime(c.StartedAt),
			FinishedAt:  metav1.NewTime(c.FinishedAt),
			ContainerID: v.containerID(c),
		}}
	case model.Created, model.Unknown:
	}
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
}

// stateWithout is the state of a container that has no record at all.
func (v *view) stateWithout(ref podspec.ContainerRef) v1.ContainerState {
	switch {
	case ref.Type == podspec.Init && v.anyRegularRecord():
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason:  "Completed",
			Message: "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
		}}
	case v.wasReset(ref) && v.resetting():
		return waitingState(restartingAll, restartingAllText)
	case len(v.pod.Spec.InitContainers) > 0:
		return waitingState("PodInitializing", "")
	}
	return waitingState("ContainerCreating", "")
}

func waitingState(reason, message string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// addStartError shows why a container that should run does not: the last
// failure to start it becomes the waiting reason, and how it ended before moves
// to lastState.
func (v *view) addStartError(ref podspec.ContainerRef, newest *model.Container, s *v1.ContainerStatus) {
	failure, ok := v.startError(ref, newest)
	if !ok || !restartWanted(v.pod, ref.Container, newest) {
		return
	}
	// The kubelet takes no init container that exited 0 for one that starts again, a sidecar
	// neither (convertToAPIContainerStatuses).
	if inits := ref.Type == podspec.Init || ref.Type == podspec.Sidecar; inits && newest != nil && newest.State == model.Exited && newest.ExitCode == 0 {
		return
	}
	if s.State.Terminated != nil {
		s.LastTerminationState = s.State
	}
	s.State = waitingState(failure.Reason, failure.Message)
}

// startError is the failure that is to be shown: a restart delay that holds the
// container now, or the last failure to start it.
func (v *view) startError(ref podspec.ContainerRef, newest *model.Container) (model.StartError, bool) {
	if newest != nil && newest.State == model.Exited && ref.Type != podspec.Ephemeral {
		if hold, held := v.backoffHold(start{ref: ref}); held && !hold.Estimated {
			return model.StartError{Reason: string(model.CrashLoopBackOff), Message: v.backoffMessage(ref)}, true
		}
	}
	failure, ok := v.obs.Memory.StartErrors[ref.Name]
	return failure, ok
}

func (v *view) backoffMessage(ref podspec.ContainerRef) string {
	b := v.obs.Memory.Backoffs[ref.Name]
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		b.Duration, ref.Name, v.pod.Name, v.pod.Namespace, v.pod.UID)
}

func (v *view) addReadiness(ref podspec.ContainerRef, newest *model.Container, s *v1.ContainerStatus) {
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
	started := running && v.passed(ref.Container, newest, model.Startup)
	s.Started = &started
	s.Ready = started && v.passed(ref.Container, newest, model.Readiness)
}

// passed tells that a container has no probe of that type, or one whose verdict
// is success.
func (v *view) passed(spec *v1.Container, c *model.Container, t model.ProbeType) bool {
	return model.ProbeOf(spec, t) == nil || v.judge(spec, c, t).result == model.ProbeSuccess
}
