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
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
)

// Input observes a pod and returns the input of a plan, and its snapshot. It returns an error for a pod that was
// applied to another runtime. The pod gets the current stored objects that its manifest does not contain. If an edit is
// not admitted, the input is for the version that keeps running.
func (o *Observer) Input(
	ctx context.Context, ref model.PodRef, desired *podspec.Desired, opts plan.Options,
) (*plan.Input, *snapshot.Pod, error) {
	desired, err := o.withObjects(ctx, desired)
	if err != nil {
		return nil, nil, err
	}
	s, err := o.Observe(ctx, ref, desired)
	if err != nil {
		return nil, nil, err
	}
	if err = o.checkEndpoint(ctx, ref, s); err != nil {
		return nil, nil, err
	}
	in := s.Input(ref, desired, opts)
	if desired != nil && len(desired.Pod.Spec.ReadinessGates) > 0 {
		o.addConditions(ctx, in)
	}
	if !in.NeedsAdmission() {
		return in, s, nil
	}
	if in.Observed.Others, err = o.Others(ref); err != nil {
		return nil, nil, err
	}
	hold, kept := in.Refused()
	if hold == nil {
		return in, s, nil
	}
	opts.Admission, opts.Refused = nil, hold
	return o.Input(ctx, ref, kept, opts)
}

// addConditions adds the conditions of a pod of the API server in the API. A plan depends on them only if the pod has
// readiness gates.
func (o *Observer) addConditions(ctx context.Context, in *plan.Input) {
	if o.Conditions != nil && in.Cluster != nil {
		in.Cluster.Conditions = o.Conditions(ctx, in.Desired.Pod.UID)
	}
}

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
