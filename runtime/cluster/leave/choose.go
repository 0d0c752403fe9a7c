package leave

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Options are those of kubectl drain.
type Options struct {
	// Grace replaces the grace period of all pods, in seconds. If nil, each pod has its own.
	Grace *int64
	// Force also evicts pods that no controller creates again, and DeleteEmptyDir pods that lose an emptyDir volume.
	Force, DeleteEmptyDir bool
}

// choose returns the pods to evict. It returns an error that names the pods that the options do not allow to evict
// (kubectl: drain.Helper.makeFilters).
func choose(pods []v1.Pod, o Options) (evict []v1.Pod, err error) {
	var unmanaged, local []string
	for i := range pods {
		pod := &pods[i]
		name := pod.Namespace + "/" + pod.Name
		switch {
		case podspec.IsMirror(pod) || isDaemon(pod):
			continue
		case model.IsOver(&pod.Status) || pod.DeletionTimestamp != nil:
		case metav1.GetControllerOf(pod) == nil && !o.Force:
			unmanaged = append(unmanaged, name)
		case hasEmptyDir(pod) && !o.DeleteEmptyDir:
			local = append(local, name)
		}
		evict = append(evict, *pod)
	}
	if len(unmanaged) > 0 {
		err = fmt.Errorf("no controller would create these pods again: %s; --force ends them",
			strings.Join(unmanaged, ", "))
	}
	if len(local) > 0 {
		err = errors.Join(err, fmt.Errorf("these pods would lose the data of emptyDir volumes: %s; "+
			"--delete-emptydir-data ends them", strings.Join(local, ", ")))
	}
	return evict, err
}

// remaining returns the pods that end with the Node: those of DaemonSets, and pods that were bound in the meantime.
func remaining(pods []v1.Pod) []v1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod v1.Pod) bool { return podspec.IsMirror(&pod) })
}

func isDaemon(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == podspec.KindDaemonSet
}

func hasEmptyDir(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.EmptyDir != nil })
}
