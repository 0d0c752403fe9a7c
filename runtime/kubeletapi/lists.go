package kubeletapi

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
)

// lister lists the pods of the node.
type lister struct {
	agent   Agent
	runtime Runtime
	node    string
	// slots holds a value for each list that is being made.
	slots chan struct{}
}

// servePods lists the pods of the node with their status (kubelet: getPods).
func (l *lister) servePods(w http.ResponseWriter, r *http.Request) error {
	return l.serve(w, r, func(ctx context.Context) ([]v1.Pod, error) {
		shown, err := l.agent.Shown(ctx)
		if err != nil || len(shown) == 0 {
			return nil, err
		}
		pods, err := l.agent.List(ctx, shown)
		if pods == nil && err != nil {
			return nil, err
		}
		return inAPIForm(pods, shown, l.node), nil
	})
}

// serve makes a list in a slot, and writes it without one: a client that reads slowly must not delay others.
func (l *lister) serve(
	w http.ResponseWriter, r *http.Request, list func(context.Context) ([]v1.Pod, error),
) error {
	pods, err := l.inSlot(r.Context(), list)
	if err != nil {
		return err
	}
	return writeJSON(w, podList(pods))
}

// inSlot makes a list in a slot, which is free again also after a panic.
func (l *lister) inSlot(ctx context.Context, list func(context.Context) ([]v1.Pod, error)) ([]v1.Pod, error) {
	release, err := l.wait(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return list(ctx)
}

// inAPIForm returns pods as they appear in the API. shown are the same pods; one may be missing in pods.
func inAPIForm(pods []*v1.Pod, shown []*podspec.Desired, node string) []v1.Pod {
	known := map[types.UID]*podspec.Desired{}
	for _, d := range shown {
		known[d.Pod.UID] = d
	}
	items := make([]v1.Pod, 0, len(pods))
	for _, p := range pods {
		if d := known[p.UID]; d != nil {
			items = append(items, inAPI(p, d, node))
		}
	}
	return items
}

// inAPI returns a pod as it appears in the API: a pod that is not from the API server has the name and the annotation
// of a static pod. It changes nothing that the argument refers to.
func inAPI(pod *v1.Pod, d *podspec.Desired, node string) v1.Pod {
	p := *pod
	p.TypeMeta = metav1.TypeMeta{}
	p.Name, p.Spec.NodeName = APIName(d, node), node
	p.Annotations = maps.Clone(p.Annotations)
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[podspec.AnnotationConfigSource] = "file"
	d.MarkSource(&p)
	return p
}

// serveRunningPods lists the pods that run according to the runtime, with the names and images of their running
// containers (kubelet: GetRunningPods).
func (l *lister) serveRunningPods(w http.ResponseWriter, r *http.Request) error {
	return l.serve(w, r, l.runningPods)
}

func (l *lister) runningPods(ctx context.Context) ([]v1.Pod, error) {
	ready := &runtimeapi.PodSandboxFilter{
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}
	sandboxes, err := l.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: ready})
	if err != nil {
		return nil, err
	}
	running := &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}
	containers, err := l.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: running})
	if err != nil {
		return nil, err
	}
	return runningPods(sandboxes.GetItems(), containers.GetContainers()), nil
}

// runningPods groups containers by pod, the newest pod first (kubelet: GetPods, ToAPIPod).
func runningPods(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) []v1.Pod {
	sandboxes, containers = slices.Clone(sandboxes), slices.Clone(containers)
	slices.SortStableFunc(sandboxes, newestFirst)
	slices.SortStableFunc(containers, newestFirst)
	var pods []v1.Pod
	places := map[string]int{}
	for _, sandbox := range sandboxes {
		m := sandbox.GetMetadata()
		if _, known := places[m.GetUid()]; known || m == nil {
			continue
		}
		places[m.GetUid()] = len(pods)
		pods = append(pods, v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: m.GetNamespace(),
			Name:      m.GetName(),
			UID:       types.UID(m.GetUid()),
		}})
	}
	for _, c := range containers {
		at, known := places[c.GetLabels()[criconfig.LabelPodUID]]
		if !known {
			continue
		}
		spec := &pods[at].Spec
		spec.Containers = append(spec.Containers, v1.Container{
			Name:  c.GetMetadata().GetName(),
			Image: c.GetImage().GetImage(),
		})
	}
	return pods
}

// newestFirst orders sandboxes or containers by the time of their creation.
func newestFirst[T interface{ GetCreatedAt() int64 }](a, b T) int {
	return cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt())
}

// wait waits until a list of pods may be made. Each list queries the runtime.
func (l *lister) wait(ctx context.Context) (release func(), err error) {
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func podList(items []v1.Pod) *v1.PodList {
	return &v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: items}
}
