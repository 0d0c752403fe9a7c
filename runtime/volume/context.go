package volume

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Context is what the volumes of one pod depend on.
type Context struct {
	// Pod says where the pod's files lie.
	Pod state.Pod
	// Desired is the pod with the ConfigMaps and Secrets of its volumes.
	Desired *podspec.Desired
	// Allocatable is what the node has to give to pods: the largest size of a
	// volume in memory, and for downwardAPI the value of a limit that is not set.
	Allocatable v1.ResourceList
}

// find returns the volume of that name and its field path.
func (c Context) find(name string) (*v1.Volume, string, error) {
	vol, at := podspec.FindVolume(c.Desired.Pod, name)
	if vol == nil {
		return nil, "", fmt.Errorf("pod %s/%s has no volume %q", c.Desired.Pod.Namespace, c.Desired.Pod.Name, name)
	}
	return vol, at, nil
}

// fsGroup is the group that the pod's volumes belong to; nil when it names none.
func (c Context) fsGroup() *int64 {
	if sc := c.Desired.Pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}
