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

// Keeper is the source that pods of workloads have in their records, whoever made them (podspec.Desired).
const Keeper = model.WorkloadKeeper

// Expanded is what a workload comes to.
type Expanded = workload.Expansion

// Lister says how pods stand.
type Lister interface {
	Standing(ctx context.Context, pods []*podspec.Desired) ([]model.Standing, error)
}

// Expander finds out which pods workloads shall have now.
type Expander struct {
	Layout state.Layout
	// Objects has the ConfigMaps and Secrets that were applied apart.
	Objects *objects.Store
	Lister  Lister
	// Unfit says why this machine is no node for a pod of a DaemonSet; see workload.Input.
	Unfit func(*v1.Pod) string
	Now   func() time.Time
}

// Owns reports whether a pod or a Job is one of a workload: its controller is of that kind and name.
func Owns(key state.ObjectKey, one metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(one)
	return owner != nil && one.GetNamespace() == key.Namespace && owner.Kind == key.Kind && owner.Name == key.Name
}

// PodsOf are the pods of a workload that were applied, and not yet removed.
func PodsOf(key state.ObjectKey, applied []state.AppliedPod) []state.AppliedPod {
	var pods []state.AppliedPod
	for _, p := range applied {
		if Owns(key, p.Desired.Pod) {
			pods = append(pods, p)
		}
	}
	return pods
}

// Expand observes the pods of a workload, and says which it must have now. A pod that cannot be observed is an error of the
// expansion (Unknown). If an object of the template cannot be read, Expand returns the error with an expansion that keeps the
// pods as they are.
func (e *Expander) Expand(ctx context.Context, r *Record, applied []state.AppliedPod) (*workload.Expansion, error) {
	w := *r.Workload
	own := PodsOf(r.Key(), applied)
	template, err := e.Objects.Complete(w.Template)
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
		in.Pods = append(in.Pods, workload.Pod{Applied: p.Desired, Standing: seen[i], Deleting: p.Checkpoint.Deletion != nil})
	}
	out := workload.Expand(in)
	for i, d := range out.Pods {
		if d.Keeper != Keeper {
			kept := *d
			kept.Keeper = Keeper
			out.Pods[i] = &kept
		}
	}
	return out, nil
}

// keeping keeps pods as they were applied. A deletion that has begun goes on.
func keeping(own []state.AppliedPod) *workload.Expansion {
	x := &workload.Expansion{}
	for _, p := range own {
		if p.Checkpoint.Deletion == nil {
			x.Pods = append(x.Pods, p.Desired)
		}
	}
	return x
}
