package kubeletapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
)

// podName names the pod of a request.
type podName struct {
	namespace, name string
	// uid is empty in most requests.
	uid types.UID
}

func podNameOf(r *http.Request) podName {
	return podName{namespace: r.PathValue("namespace"), name: r.PathValue("pod"), uid: types.UID(r.PathValue("uid"))}
}

// finder finds the pods and containers of requests. node is the name of the Node.
type finder struct {
	agent   Agent
	runtime Runtime
	node    string
}

// pod returns the pod of a request, or nil. It returns the pod of a name also if it has another uid than requested,
// because the kubelet's error depends on it; the caller compares the uids.
func (f *finder) pod(ctx context.Context, want podName) (*podspec.Desired, error) {
	shown, err := f.agent.Shown(ctx)
	if err != nil {
		return nil, err
	}
	return choose(shown, want, f.node), nil
}

// choose returns the pod that a request names, or nil. Several pods may have the same name: one that is being deleted
// and its successor, or a pod of a file and one of the API server. Without a uid, a name in the API comes before a name
// in a file, then a pod that stays before one that is being deleted, then the newest. Two pods of one second have the
// same age: then the first one that the agent shows counts, because it shows those that stay first.
func choose(shown []*podspec.Desired, want podName, node string) *podspec.Desired {
	found := slices.DeleteFunc(slices.Clone(shown), func(d *podspec.Desired) bool {
		return d.Pod.Namespace != want.namespace || (d.Pod.Name != want.name && APIName(d, node) != want.name)
	})
	if len(found) == 0 {
		return nil
	}
	first := func(is func(d *podspec.Desired) bool) func(a, b *podspec.Desired) int {
		rank := func(d *podspec.Desired) int {
			if is(d) {
				return 0
			}
			return 1
		}
		return func(a, b *podspec.Desired) int { return cmp.Compare(rank(a), rank(b)) }
	}
	byUID := first(func(d *podspec.Desired) bool { return d.Pod.UID == want.uid })
	byName := first(func(d *podspec.Desired) bool { return APIName(d, node) == want.name })
	byLife := first(func(d *podspec.Desired) bool { return d.Pod.DeletionTimestamp == nil })
	return slices.MinFunc(found, func(a, b *podspec.Desired) int {
		byAge := b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time)
		return cmp.Or(byUID(a, b), byName(a, b), byLife(a, b), byAge)
	})
}

// APIName returns the name of a pod in the API. A pod that is not from the API server has the name of the node appended
// (kubelet: generatePodName).
func APIName(d *podspec.Desired, node string) string {
	if d.FromCluster() {
		return d.Pod.Name
	}
	return d.Pod.Name + "-" + node
}

// runningContainer returns the id of the newest running container that a request names, or an empty string (kubelet:
// findContainer).
func (f *finder) runningContainer(r *http.Request, pod *podspec.Desired) (string, error) {
	if uid := podNameOf(r).uid; uid != "" && uid != pod.Pod.UID {
		return "", nil
	}
	running := &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{
			criconfig.LabelPodUID:        string(pod.Pod.UID),
			criconfig.LabelContainerName: r.PathValue("container"),
		},
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}
	list, err := f.runtime.ListContainers(r.Context(), &runtimeapi.ListContainersRequest{Filter: running})
	if err != nil || len(list.GetContainers()) == 0 {
		return "", err
	}
	return slices.MinFunc(list.GetContainers(), newestFirst).GetId(), nil
}

// readySandbox returns the id of the newest ready sandbox of a pod, or an empty string.
func (f *finder) readySandbox(ctx context.Context, uid types.UID) (string, error) {
	list, err := f.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: map[string]string{criconfig.LabelPodUID: string(uid)},
		State:         &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}})
	if err != nil || len(list.GetItems()) == 0 {
		return "", err
	}
	return slices.MinFunc(list.GetItems(), newestFirst).GetId(), nil
}
