package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/workload"
)

// expanded is a workload with its pods and their current state.
type expanded struct {
	controller.Change
	*workload.Expansion
}

func (x *expanded) document() view.WorkloadChange {
	return view.WorkloadChangeOf(&x.Change, x.Expansion)
}

// missing describes the state of the workload and the missing pods, without the name of the workload.
func (x *expanded) missing() string {
	doc := x.document()
	return strings.Join(append([]string{view.WorkloadCounts(&doc)}, view.WorkloadMissing(&doc, x.Expansion)...), "; ")
}

// isUnknown reports whether a pod could not be observed.
func (x *expanded) isUnknown(ref model.PodRef) bool {
	return slices.ContainsFunc(x.Unknown, func(u workload.Unknown) bool { return u.Pod == ref })
}

// onlyUnknownRemain reports whether all observable pods are settled.
func (x *expanded) onlyUnknownRemain() bool {
	busy := slices.ContainsFunc(x.Gone, func(ref model.PodRef) bool { return !x.isUnknown(ref) })
	return !busy && !slices.ContainsFunc(x.Pods, func(d *podspec.Desired) bool {
		ref := model.RefOf(d.Pod)
		return !x.isUnknown(ref) && !slices.Contains(x.Settled, ref)
	})
}

// expander computes the pods that workloads should have.
type expander struct {
	sess   *session.Session
	engine *runtime.Engine
	// labels are the node labels from the command line; nil for none.
	labels map[string]string
}

// change computes the changes to workloads without storing them. It refuses pods with the name of another pod or of a
// pod in others.
func (e *expander) change(
	ctx context.Context, workloads []*podspec.Workload, others []*podspec.Desired,
) ([]*expanded, error) {
	changes := make([]controller.Change, 0, len(workloads))
	for _, w := range workloads {
		c, err := e.sess.Workloads().Change(w)
		if err != nil {
			return nil, refusedObject(err)
		}
		changes = append(changes, c)
	}
	all, err := e.expand(ctx, changes)
	if err != nil {
		return nil, err
	}
	pods, _ := podsOf(all)
	return all, checkTwice(slices.Concat(others, pods))
}

// expand computes the pods of workloads, stored or not.
func (e *expander) expand(ctx context.Context, changes []controller.Change) ([]*expanded, error) {
	applied, unreadable, err := state.Applied(e.sess.Flags.Layout())
	if err != nil {
		return nil, err
	}
	for _, one := range unreadable {
		e.sess.IO.NoteOnce("note: %v", one)
	}
	x := e.engine.Expander(e.sess.Flags.NodeLabels(e.labels))
	all := make([]*expanded, 0, len(changes))
	for _, c := range changes {
		expansion, err := x.Expand(ctx, c.Record, applied)
		if err != nil {
			return nil, err
		}
		if err := checkNames(c.Record.Key(), expansion.Pods, applied); err != nil {
			return nil, err
		}
		all = append(all, &expanded{Change: c, Expansion: expansion})
	}
	if ctx.Err() != nil {
		// Without this error, pods that were not observed in time would count as missing.
		return nil, context.Cause(ctx)
	}
	return all, nil
}

// checkNames refuses a workload if one of its pods has the name of a pod that it does not own. A pod of the API server
// has its name beside others.
func checkNames(key state.ObjectKey, pods []*podspec.Desired, applied []state.AppliedPod) error {
	there := map[model.PodRef]*podspec.Desired{}
	for _, p := range applied {
		if !p.Desired.FromCluster() {
			there[nameOf(p.Desired)] = p.Desired
		}
	}
	for _, d := range pods {
		if other := there[nameOf(d)]; other != nil && !controller.OwnsPod(key, other) {
			err := fmt.Errorf("%s: another pod with the name %s exists: delete that pod, or rename one of the two",
				key, nameOf(d))
			return &exit.CodeError{Code: exit.Refused, Err: err}
		}
	}
	return nil
}

// nameOf returns the reference of a pod without its uid.
func nameOf(d *podspec.Desired) model.PodRef {
	return model.PodRef{Namespace: d.Pod.Namespace, Name: d.Pod.Name}
}

// checkTwice refuses two pods with the same name.
func checkTwice(pods []*podspec.Desired) error {
	seen := map[model.PodRef]bool{}
	for _, d := range pods {
		if name := nameOf(d); seen[name] {
			err := fmt.Errorf("two workloads have a pod with the name %s: rename one of the workloads", name)
			return &exit.CodeError{Code: exit.Refused, Err: err}
		}
		seen[nameOf(d)] = true
	}
	return nil
}

// podsOf returns the pods to keep and the pods to delete of all workloads.
func podsOf(all []*expanded) (pods []*podspec.Desired, gone []model.PodRef) {
	for _, x := range all {
		pods = append(pods, x.Pods...)
		gone = append(gone, x.Gone...)
	}
	return pods, gone
}
