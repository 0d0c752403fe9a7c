package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// statusHistory checks that no status that an API server gets goes back.
type statusHistory struct {
	t  *testing.T
	mu sync.Mutex
	// ids are the containers that have started for each container of a pod, in their order. One that was only created may
	// be removed again, and then the status is that of the one before.
	ids map[string][]string
}

func newStatusHistory(t *testing.T) *statusHistory {
	t.Helper()
	return &statusHistory{t: t, ids: map[string][]string{}}
}

// stored checks a new status of a pod.
func (h *statusHistory) stored(before, after *v1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, was, is := after.Name+" "+string(after.UID), &before.Status, &after.Status
	ended := was.Phase == v1.PodFailed || was.Phase == v1.PodSucceeded
	switch {
	case before.UID != after.UID:
		return
	case ended && is.Phase != was.Phase:
		h.t.Errorf("%s: the phase goes from %s to %s", name, was.Phase, is.Phase)
	case was.Phase == v1.PodRunning && is.Phase == v1.PodPending:
		h.t.Errorf("%s: the phase goes from %s to %s", name, was.Phase, is.Phase)
	case is.ObservedGeneration < was.ObservedGeneration:
		h.t.Errorf("%s: the generation goes from %d to %d", name, was.ObservedGeneration, is.ObservedGeneration)
	case was.StartTime != nil && !was.StartTime.Equal(is.StartTime):
		h.t.Errorf("%s: the time of the start goes from %v to %v", name, was.StartTime, is.StartTime)
	}
	for i := range was.ContainerStatuses {
		for j := range is.ContainerStatuses {
			if was.ContainerStatuses[i].Name == is.ContainerStatuses[j].Name {
				h.container(name, &was.ContainerStatuses[i], &is.ContainerStatuses[j])
			}
		}
	}
}

// container checks the new status of a container. An earlier container must not come back.
func (h *statusHistory) container(pod string, was, is *v1.ContainerStatus) {
	key := pod + "/" + is.Name
	if is.RestartCount < was.RestartCount {
		h.t.Errorf("%s: the restart count goes from %d to %d", key, was.RestartCount, is.RestartCount)
	}
	if was.State.Terminated != nil && is.State.Running != nil && is.ContainerID == was.ContainerID {
		h.t.Errorf("%s: %s runs again", key, is.ContainerID)
	}
	ids := h.ids[key]
	switch i := slices.Index(ids, is.ContainerID); {
	case is.ContainerID == "" && len(ids) > 0:
		h.t.Errorf("%s: the containers %v are lost", key, ids)
	case is.ContainerID == "" || is.State.Waiting != nil || i >= 0 && i == len(ids)-1:
	case i >= 0:
		h.t.Errorf("%s: the container %s is back after %v", key, is.ContainerID, ids[i+1:])
	default:
		h.ids[key] = append(ids, is.ContainerID)
	}
}

// statusDiffers describes what a pod in the API lacks. It is empty if all containers run.
func statusDiffers(pod *v1.Pod) string {
	s := &pod.Status
	if pod.DeletionTimestamp != nil || s.Phase != v1.PodRunning || s.ObservedGeneration != pod.Generation ||
		len(s.ContainerStatuses) != len(pod.Spec.Containers) {
		return fmt.Sprintf("%s is %s in the API, generation %d of %d, deleted %v", pod.Name, s.Phase,
			s.ObservedGeneration, pod.Generation, pod.DeletionTimestamp)
	}
	for i := range s.ContainerStatuses {
		if c := &s.ContainerStatuses[i]; c.State.Running == nil || !c.Ready {
			return fmt.Sprintf("container %s does not run in the API: %+v", c.Name, c.State)
		}
	}
	return ""
}

// runningPod has the containers and ready sandboxes of one pod in the runtime, each by its name and image.
type runningPod []string

func (r runningPod) String() string { return strings.Join(r, ", ") }

// differs describes how a pod differs from its manifest in the runtime.
func (r runningPod) differs(pod *v1.Pod) string {
	want := []string{"sandbox"}
	for i := range pod.Spec.Containers {
		want = append(want, pod.Spec.Containers[i].Name+" "+pod.Spec.Containers[i].Image)
	}
	var found []string
	for _, one := range r {
		found = append(found, one[:strings.LastIndex(one, " ")])
	}
	slices.Sort(want)
	if slices.Sort(found); !slices.Equal(found, want) {
		return fmt.Sprintf("the runtime has %q, want %q", found, want)
	}
	return ""
}

// containers returns the running containers and ready sandboxes of all pods.
func (l *nodeLab) containers() map[types.UID]runningPod {
	l.t.Helper()
	sandboxes, containers := l.listRuntime()
	all := map[types.UID]runningPod{}
	for _, s := range sandboxes {
		uid, text := types.UID(s.GetMetadata().GetUid()), "sandbox "+s.GetId()
		if s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
			all[uid] = append(all[uid], text)
		}
	}
	for _, c := range containers {
		if c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			uid := types.UID(c.GetLabels()["io.kubernetes.pod.uid"])
			all[uid] = append(all[uid], fmt.Sprintf("%s %s %s", c.GetMetadata().GetName(),
				strings.TrimPrefix(c.GetImage().GetImage(), "sha256:"), c.GetId()))
		}
	}
	for uid := range all {
		slices.Sort(all[uid])
	}
	return all
}
