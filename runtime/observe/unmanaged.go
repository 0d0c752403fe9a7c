package observe

import (
	"cmp"
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
)

// AnnotationManager marks a pod that podctl does not manage. Its value is the program that manages the pod.
const AnnotationManager = "podctl.io/manager"

// The managers of pods without a checkpoint.
const (
	// ManagerKubelet: a kubelet, or a tool that uses the same labels.
	ManagerKubelet = "kubelet"
	// ManagerLost: podctl created the pod, and its checkpoint is lost or in another directory.
	ManagerLost = "podctl (no checkpoint)"
)

// Unmanaged lists the pods of the runtime that have a kubelet's labels and are not known. It rebuilds them from names
// and images in the runtime. Their manifests are unknown, so podctl can only show them.
func (l *Lister) Unmanaged(ctx context.Context, known map[types.UID]bool) ([]*podspec.Desired, error) {
	sandboxes, containers, err := list(ctx, l.observer.world.Client, "all", nil)
	if err != nil {
		return nil, err
	}
	pods := map[types.UID]*v1.Pod{}
	slices.SortFunc(sandboxes, func(a, b *runtimeapi.PodSandbox) int {
		return cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt())
	})
	for _, s := range sandboxes {
		if uid := types.UID(s.GetLabels()[criconfig.LabelPodUID]); uid != "" && !known[uid] {
			pods[uid] = unmanagedPod(s)
		}
	}
	if len(pods) == 0 {
		return nil, nil
	}
	addUnmanagedContainers(pods, containers)
	found := make([]*podspec.Desired, 0, len(pods))
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		found = append(found, &podspec.Desired{Pod: pods[uid], Rebuilt: true})
	}
	return found, nil
}

func unmanagedPod(s *runtimeapi.PodSandbox) *v1.Pod {
	manager := ManagerKubelet
	if s.GetAnnotations()[criconfig.AnnotationSandboxSpecHash] != "" {
		manager = ManagerLost
	}
	labels := maps.Clone(s.GetLabels())
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return key == criconfig.LabelPodName || key == criconfig.LabelPodNamespace || key == criconfig.LabelPodUID
	})
	return &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        s.GetMetadata().GetName(),
			Namespace:   s.GetMetadata().GetNamespace(),
			UID:         types.UID(s.GetMetadata().GetUid()),
			Labels:      labels,
			Annotations: map[string]string{AnnotationManager: manager},
		},
		// A reader must not conclude that something has to be restarted.
		Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever},
	}
}

func addUnmanagedContainers(pods map[types.UID]*v1.Pod, containers []*runtimeapi.Container) {
	slices.SortFunc(containers, func(a, b *runtimeapi.Container) int {
		return cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt())
	})
	for _, c := range containers {
		pod := pods[types.UID(c.GetLabels()[criconfig.LabelPodUID])]
		name := c.GetLabels()[criconfig.LabelContainerName]
		if pod == nil || name == "" {
			continue
		}
		one := v1.Container{Name: name, Image: c.GetImage().GetUserSpecifiedImage()}
		if one.Image == "" {
			one.Image = c.GetImage().GetImage()
		}
		known := slices.IndexFunc(pod.Spec.Containers, func(other v1.Container) bool { return other.Name == name })
		if known >= 0 {
			pod.Spec.Containers[known] = one
			continue
		}
		pod.Spec.Containers = append(pod.Spec.Containers, one)
	}
}

// splitInits guesses the init containers of a rebuilt pod, because the runtime does not report their type: containers
// that succeeded before another one was first started. They count neither as ready nor as missing.
func splitInits(pod *v1.Pod) {
	statuses := pod.Status.ContainerStatuses
	isInit := map[string]bool{}
	for i := range statuses {
		ended := statuses[i].State.Terminated
		beginsAfter := func(s v1.ContainerStatus) bool {
			began := beganAt(&s)
			return s.RestartCount == 0 && !began.IsZero() && !began.Before(&ended.FinishedAt)
		}
		isInit[statuses[i].Name] = ended != nil && ended.ExitCode == 0 && slices.ContainsFunc(statuses, beginsAfter)
	}
	pod.Spec.InitContainers, pod.Spec.Containers = split(pod.Spec.Containers,
		func(c v1.Container) bool { return isInit[c.Name] })
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = split(statuses,
		func(s v1.ContainerStatus) bool { return isInit[s.Name] })
}

// split divides the items into chosen ones and the rest.
func split[T any](all []T, chosen func(T) bool) (these, others []T) {
	these = slices.DeleteFunc(slices.Clone(all), func(item T) bool { return !chosen(item) })
	return these, slices.DeleteFunc(slices.Clone(all), chosen)
}

// beganAt returns the start of a container's run, if there is one.
func beganAt(s *v1.ContainerStatus) metav1.Time {
	switch {
	case s.State.Running != nil:
		return s.State.Running.StartedAt
	case s.State.Terminated != nil:
		return s.State.Terminated.StartedAt
	}
	return metav1.Time{}
}
