package observe

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// withObjects adds the current objects of the cluster to a pod of the API server, and those of podctl's store to any
// other pod.
func (o *Observer) withObjects(ctx context.Context, d *podspec.Desired) (with *podspec.Desired, err error) {
	switch {
	case d == nil || !d.FromCluster():
		return o.withStored(ctx, d)
	case o.world.Cluster == nil:
		return d, nil
	}
	if with, err = o.world.Cluster.Complete(ctx, d); err != nil {
		err = fmt.Errorf("pod %s: %w", model.RefOf(d.Pod), err)
	}
	return with, err
}

// withStored adds the current stored objects that the pod's manifest does not contain. A pod of a workload keeps the
// values in the environment of its containers: otherwise all pods would restart at once, while a rollout replaces one
// after the other.
func (o *Observer) withStored(ctx context.Context, d *podspec.Desired) (*podspec.Desired, error) {
	if o.world.Objects == nil || d == nil {
		return d, nil
	}
	with, err := o.world.Objects.Complete(ctx, d)
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
