package controller

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/workload"
)

// Expanded is the expansion of a workload.
type Expanded = workload.Expansion

// Lister reports the state of pods.
type Lister interface {
	Standing(ctx context.Context, pods []*podspec.Desired) ([]model.Standing, error)
}

// Expander determines which pods workloads need now.
type Expander struct {
	Layout state.Layout
	// Objects has the ConfigMaps and Secrets that were applied separately.
	Objects *objects.Store
	Lister  Lister
	// Unfit explains why this machine is no node for a pod of a DaemonSet; see workload.Input.
	Unfit func(*v1.Pod) string
	Now   func() time.Time
}

// Owns reports whether a pod or a Job belongs to a workload: the kind and name of its controller match.
func Owns(key state.ObjectKey, one metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(one)
	return owner != nil && one.GetNamespace() == key.Namespace && owner.Kind == key.Kind && owner.Name == key.Name
}

// OwnsPod is Owns for a pod. A pod of the API server belongs to a workload of its cluster, whatever its name is.
func OwnsPod(key state.ObjectKey, d *podspec.Desired) bool {
	return !d.FromCluster() && Owns(key, d.Pod)
}

// PodsOf returns the pods of a workload that were applied and not removed yet.
func PodsOf(key state.ObjectKey, applied []state.AppliedPod) []state.AppliedPod {
	var pods []state.AppliedPod
	for _, p := range applied {
		if OwnsPod(key, p.Desired) {
			pods = append(pods, p)
		}
	}
	return pods
}

// Expand observes the pods of a workload and returns which it needs now. A pod that cannot be observed is an error in
// the expansion (Unknown). If an object of the template cannot be read, Expand returns the error with an expansion that
// keeps the pods as they are.
func (e *Expander) Expand(ctx context.Context, r *Record, applied []state.AppliedPod) (*workload.Expansion, error) {
	w := *r.Workload
	own := PodsOf(r.Key(), applied)
	template, err := e.Objects.Complete(ctx, w.Template)
	if err != nil {
		return keeping(own), fmt.Errorf("%s: %w", r.Key(), err)
	}
	key, err := e.Layout.DigestKey().Stored()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Key(), err)
	}
	template.UseKey(key)
	w.Template = template
	in := &workload.Input{Workload: &w, Job: r.Job, Unfit: e.Unfit, Now: e.Now()}
	pods := make([]*podspec.Desired, 0, len(own))
	for _, p := range own {
		pods = append(pods, p.Desired)
	}
	seen, err := e.Lister.Standing(ctx, pods)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Key(), err)
	}
	for i, p := range own {
		in.Pods = append(in.Pods, workload.Pod{
			Applied:  p.Desired,
			Standing: seen[i],
			Deleting: p.Checkpoint.Deletion != nil,
		})
	}
	out := workload.Expand(in)
	for i, d := range out.Pods {
		if d.Owner != model.OwnerWorkloads {
			kept := *d
			kept.Owner = model.OwnerWorkloads
			out.Pods[i] = &kept
		}
	}
	return out, nil
}

// keeping keeps pods as they were applied. Deletions that have begun continue.
func keeping(own []state.AppliedPod) *workload.Expansion {
	x := &workload.Expansion{}
	for _, p := range own {
		if p.Checkpoint.Deletion == nil {
			x.Pods = append(x.Pods, p.Desired)
		}
	}
	return x
}
