package lifecycle

import (
	"context"
	"fmt"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// planWorkloads computes the pods of the workloads, and adds them to the pods to plan.
func (o *planOptions) planWorkloads(ctx context.Context, sess *session.Session, observed *selection.Observed) error {
	if len(observed.Workloads) == 0 {
		return nil
	}
	key := controller.KeyOf(observed.Workloads[0])
	switch {
	case observed.Engine == nil:
		return exit.Usagef("--snapshot has pods only: plan %s without --snapshot", key)
	case o.save != "":
		return exit.Usagef("--save saves plans of pods only: plan %s separately", key)
	}
	e := &expander{sess: sess, engine: observed.Engine, labels: o.admission.Labels}
	all, err := e.change(ctx, observed.Workloads, observed.Pods)
	if err != nil {
		return err
	}
	o.workloads = all
	pods, _ := podsOf(all)
	observed.Pods = append(observed.Pods, pods...)
	return nil
}

func documentsOf(all []*expanded) []view.WorkloadChange {
	docs := make([]view.WorkloadChange, 0, len(all))
	for _, x := range all {
		docs = append(docs, x.document())
	}
	return docs
}

// workloadPlans are the plans of the pods of one workload.
type workloadPlans struct {
	change view.WorkloadChange
	plans  []*plan.Plan
}

// plansOfWorkloads groups plans by the workloads of their pods.
func (o *planOptions) plansOfWorkloads(plans []*plan.Plan) (own []*workloadPlans, rest []*plan.Plan) {
	of := map[model.PodRef]*workloadPlans{}
	for _, x := range o.workloads {
		w := &workloadPlans{change: x.document()}
		own = append(own, w)
		for _, ref := range w.change.Pods {
			of[ref] = w
		}
		for _, ref := range w.change.Deletes {
			of[ref] = w
		}
	}
	for _, p := range plans {
		if w := of[p.Pod]; w != nil {
			w.plans = append(w.plans, p)
		} else {
			rest = append(rest, p)
		}
	}
	return own, rest
}

// showWorkloads prints the plans of each workload's pods under its name. Plans without changes are only counted.
func (o *planOptions) showWorkloads(sess *session.Session, text *view.Plan, own []*workloadPlans, before int) error {
	for i, w := range own {
		if before+i > 0 {
			fmt.Fprintln(sess.IO.Out) //nolint:errcheck // a closed pipe ends the process
		}
		sess.IO.PrintBold(view.WorkloadHeading(&w.change))
		// Pods of one workload have the same remarks.
		text.Printed = map[string]bool{}
		for _, p := range w.plans {
			if !o.unchanged && len(p.Steps)+len(p.Holds)+len(p.Record) == 0 && p.Complete {
				continue
			}
			fmt.Fprintln(sess.IO.Out) //nolint:errcheck // a closed pipe ends the process
			if err := text.Write(p); err != nil {
				return err
			}
		}
		sess.IO.Print("")
		for _, line := range view.WorkloadWaits(&w.change) {
			sess.IO.Print("%s", line)
		}
		sess.IO.PrintBold(fmt.Sprintf("%s: %s", w.change.Key(), view.WorkloadSummary(&w.change, w.plans)))
	}
	return nil
}
