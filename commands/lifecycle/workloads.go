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

// expanded is a workload with what it comes to now.
type expanded struct {
	controller.Change
	*workload.Expansion
}

func (x *expanded) document() view.WorkloadChange {
	return view.WorkloadChangeOf(&x.Change, x.Expansion)
}

// missing says how the workload stands, and what it lacks. It does not name the workload.
func (x *expanded) missing() string {
	doc := x.document()
	return strings.Join(append([]string{view.WorkloadCounts(&doc)}, view.WorkloadMissing(&doc, x.Expansion)...), "; ")
}

// isUnknown reports whether a pod could not be observed.
func (x *expanded) isUnknown(ref model.PodRef) bool {
	return slices.ContainsFunc(x.Unknown, func(u workload.Unknown) bool { return u.Pod == ref })
}

// onlyUnknownLeft reports whether all pods are settled except those that could not be observed, and those that wait for them.
func (x *expanded) onlyUnknownLeft() bool {
	busy := slices.ContainsFunc(x.Gone, func(ref model.PodRef) bool { return !x.isUnknown(ref) })
	return !busy && !slices.ContainsFunc(x.Pods, func(d *podspec.Desired) bool {
		ref := model.RefOf(d.Pod)
		return !x.isUnknown(ref) && !slices.Contains(x.Settled, ref)
	})
}

// expander finds out which pods workloads shall have.
type expander struct {
	sess   *session.Session
	engine *runtime.Engine
	// labels are those that the command line gives the node; nil for none.
	labels map[string]string
}

// change looks at what workloads would come to, before anything is kept of them. No pod of theirs may have the name of another, or of
// one beside them.
func (e *expander) change(ctx context.Context, workloads []*podspec.Workload, beside []*podspec.Desired) ([]*expanded, error) {
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
	return all, checkTwice(slices.Concat(beside, pods))
}

// expand looks at workloads as they are kept, or would be.
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
		// Pods that were not looked at in time would count as missing.
		return nil, context.Cause(ctx)
	}
	return all, nil
}

// checkNames refuses a workload whose pods would take the place of others.
func checkNames(key state.ObjectKey, pods []*podspec.Desired, applied []state.AppliedPod) error {
	there := map[model.PodRef]*podspec.Desired{}
	for _, p := range applied {
		there[nameOf(p.Desired)] = p.Desired
	}
	for _, d := range pods {
		if other := there[nameOf(d)]; other != nil && !controller.Owns(key, other.Pod) {
			return &exit.CodeError{Code: exit.Refused, Err: fmt.Errorf("%s: its pod %s would take the place of one that is not its own: delete that, or give one of them another name", key, nameOf(d))}
		}
	}
	return nil
}

// nameOf is the name of a pod without its uid.
func nameOf(d *podspec.Desired) model.PodRef {
	return model.PodRef{Namespace: d.Pod.Namespace, Name: d.Pod.Name}
}

// checkTwice refuses pods of which two would have the same name.
func checkTwice(pods []*podspec.Desired) error {
	seen := map[model.PodRef]bool{}
	for _, d := range pods {
		if name := nameOf(d); seen[name] {
			return &exit.CodeError{Code: exit.Refused, Err: fmt.Errorf("pod %s would be made twice: give one of its workloads another name", name)}
		}
		seen[nameOf(d)] = true
	}
	return nil
}

// podsOf are all pods that workloads shall have, and those that shall go.
func podsOf(all []*expanded) (pods []*podspec.Desired, gone []model.PodRef) {
	for _, x := range all {
		pods = append(pods, x.Pods...)
		gone = append(gone, x.Gone...)
	}
	return pods, gone
}
