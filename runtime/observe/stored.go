package observe

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// withStored adds the current stored objects that the pod's manifest does not contain. A pod of a workload keeps the
// values in the environment of its containers: otherwise all pods would restart at once, while a rollout replaces one
// after the other.
func (o *Observer) withStored(d *podspec.Desired) (*podspec.Desired, error) {
	if o.world.Objects == nil || d == nil {
		return d, nil
	}
	with, err := o.world.Objects.Complete(d)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", model.RefOf(d.Pod), err)
	}
	if with == d || metav1.GetControllerOfNoCopy(d.Pod) == nil || !slices.Equal(with.Shared, d.Shared) {
		return with, nil
	}
	key, err := o.digests.Key()
	if err != nil {
		return nil, fmt.Errorf("observing pod %s: %w", model.RefOf(d.Pod), err)
	}
	d.UseKey(key)
	with.UseKey(key)
	for _, ref := range podspec.Containers(d.Pod) {
		before, now := spechash.Container(d, ref.Container), spechash.Container(with, ref.Container)
		if digest.Compare(before, now) == digest.Different {
			return d, nil
		}
	}
	return with, nil
}
