package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/plan"
)

type planOptions struct {
	selection.Selection
	output    string
	exitCode  bool
	unchanged bool
	pull      string
	ignore    bool
	probe     bool
	save      string
	pin       bool
	admission config.Admission
	graph     string
	// objects are the changes to the objects of the manifests that are neither pods nor workloads.
	objects []view.ObjectChange
	// workloads are the workloads of the manifests with their pods.
	workloads []*expanded
	// skipped are the objects of the manifests that podctl does not use.
	skipped []document.Skipped
	// deletes is set if all plans delete pods.
	deletes bool
	// pruned is the content of the set that is no longer in the manifests; nil without --prune.
	pruned *pruned
}

// NewPlan returns the command `podctl plan`.
func NewPlan(sess *session.Session) *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan [flags] [MANIFEST|POD...]",
		Short: "Show what the next pass would change, and why",
		Long: "Show what the next sync pass would change, and why. " +
			"Nothing is changed. " +
			"Without arguments, plan shows all pods that\npodctl applied in the namespace. " +
			"For ConfigMaps, Secrets and claims, it shows what apply would store, " +
			"and the plans of\nthe applied pods that the changes affect." +
			flags.ExitCodes(
				"0 success; with --exit-code: nothing to do",
				"1 error",
				"2 --exit-code: something would change, even if only podctl's record of a pod",
				"2 --exit-code: a source file has changed since it was applied",
				"3 --exit-code: at least one pod would not change now, because a change is held or pending",
				"5 manifest refused",
				"130 interrupted",
			),
		Example: "  podctl plan pod.yaml\n" +
			"  podctl plan -o json pod.yaml | jq .steps\n" +
			"  kubectl get pod web -o yaml | podctl plan -\n" +
			"  podctl plan --pin pod.yaml > pinned.yaml\n  podctl plan --graph svg pod.yaml > plan.svg",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		RunE:              flags.Run(sess, o, runPlan),
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	flags.SkipUnknown(cmd.Flags(), &o.SkipUnknown)
	flags.ConfigMaps(cmd, &o.ConfigMaps)
	f.BoolVar(&o.All, "all", false, "Plan all pods that podctl applied in the namespace (default if no pod is named)")
	o.RegisterSelectors(f, "All namespaces (if no pod is named)")
	o.RegisterSets(f)
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	f.BoolVar(&o.exitCode, "exit-code", false,
		"Exit with 2 if something would change, with 3 if something is held or pending")
	f.BoolVar(&o.unchanged, "show-unchanged", false, "Also list unchanged objects if nothing changes")
	f.Var(flags.Pull(&o.pull), "pull",
		"Pull policy for the plan: always, missing or never (default: that of the manifest)")
	f.BoolVar(&o.ignore, "ignore-backoff", false, "Restart crashed containers without delay")
	o.admission.Register(f, false)
	f.StringVar(&o.save, "save", "", "Save the plan to this file, for apply --plan")
	f.StringVar(&o.Snapshot, "snapshot", "", "Snapshot file to plan for, instead of the runtime")
	f.BoolVar(&o.probe, "probe", false, "Run the pods' probes first")
	f.BoolVar(&o.pin, "pin", false,
		"Print the manifest with image digests from the runtime instead of tags, without Secrets")
	f.Var(&flags.Choice{Value: &o.graph, Allowed: []string{"dot", "svg"}}, "graph",
		"Draw the steps and their dependencies: dot or svg")
	cmd.MarkFlagsMutuallyExclusive("graph", "output")
	for _, other := range []string{
		"output", "exit-code", "show-unchanged", "pull", "ignore-backoff", "save",
		"snapshot", "probe", "graph", "configmap", "prune", "set",
	} {
		cmd.MarkFlagsMutuallyExclusive("pin", other)
	}
	return cmd
}

func runPlan(ctx context.Context, sess *session.Session, o *planOptions, args []string) error {
	o.For = selection.Apply
	if o.pin {
		return pin(ctx, sess, slices.Concat(o.Files, args), o.Recursive)
	}
	switch {
	case o.probe && o.Snapshot != "":
		return exit.Usagef("--probe cannot be used with --snapshot")
	case o.save != "" && (o.Prune || o.Set != ""):
		return exit.Usagef("--save saves plans of pods only, and cannot be used with --prune or --set")
	}
	if o.Snapshot == "" {
		sess.Prefetch(ctx)
	}
	observed, err := o.Observe(ctx, sess, args)
	if err != nil {
		return err
	}
	o.skipped = observed.Skipped
	if o.Snapshot == "" {
		o.noteRefusals(ctx, sess, &observed.Found)
	}
	if o.objects, err = o.planObjects(sess, observed); err != nil {
		return err
	}
	if err = o.planWorkloads(ctx, sess, observed); err != nil {
		return err
	}
	if o.pruned, err = o.findPruned(ctx, sess, &observed.Found); err != nil {
		return err
	}
	if err = refusePruned(sess, o.pruned); err != nil {
		return err
	}
	outcome := o.plan(ctx, sess, observed)
	if o.pruned != nil {
		outcome = exit.WithUnreadable(ctx, outcome, o.pruned.unreadable)
	}
	return exit.WithUnreadable(ctx, outcome, observed.Unreadable)
}

// noteRefusals prints what apply would refuse.
func (o *planOptions) noteRefusals(ctx context.Context, sess *session.Session, found *selection.Found) {
	stored := func(d *podspec.Desired) bool { return d.Stored || d.Rebuilt }
	refused := refuseClusterPods(sess, slices.DeleteFunc(slices.Clone(found.Pods), stored), kubectlApply)
	if refused != nil {
		sess.IO.Note("note: %v", refused)
	}
	for _, err := range o.conflicts(ctx, sess, found) {
		sess.IO.Note("note: %v", err)
	}
}

// plan makes the plans of pods and shows them.
func (o *planOptions) plan(ctx context.Context, sess *session.Session, observed *selection.Observed) error {
	opts := o.planning()
	var probed error
	if o.probe {
		opts.ProbedSince = sess.IO.Now()
		probed = selection.ProbeFirst(ctx, observed.Engine, observed.Pods...)
	}
	if o.save != "" && observed.Engine != nil {
		// The process that executes the plan compares digests, so it needs the same key.
		if err := observed.Engine.Digests.Keep(); err != nil {
			return err
		}
	}
	var edited, reverted map[model.PodRef]string
	if observed.Engine != nil {
		observed.Pods = session.Newest(ctx, sess, observed.Pods)
		reverted = o.reverted(ctx, sess, observed.Pods)
		edited = sourceChanges(ctx, sess.Objects(), observed.Pods, func(file, change string, read bool) string {
			if !read {
				return "" // The stored copy is planned.
			}
			return fmt.Sprintf("%s %s; `podctl plan %[1]s` shows the changes", file, change)
		})
	}
	plans, outcomes := selection.Look(observed.Pods, func(d *podspec.Desired) (*plan.Plan, error) {
		p, err := observed.Observer.Plan(ctx, d, opts)
		if err == nil {
			p.Source = edited[p.Pod]
		}
		return p, err
	})
	_, gone := podsOf(o.workloads)
	gone = slices.Concat(gone, o.pruned.refs())
	ends, endOutcomes := selection.Look(gone, func(ref model.PodRef) (*plan.Plan, error) {
		return observed.Engine.Pods.PlanDeletion(ctx, ref, opts)
	})
	plans, outcomes = slices.Concat(plans, ends), slices.Concat(outcomes, endOutcomes)
	if err := exit.Join(ctx, probed, selection.Outcome(ctx, outcomes)); err != nil {
		planned := slices.Concat(selection.Refs(observed.Pods), gone)
		return o.showSome(ctx, sess, plans, unplanned(planned, outcomes), err)
	}
	if o.save != "" {
		if err := savePlans(o.save, plans); err != nil {
			return err
		}
	}
	for _, p := range plans {
		if text := reverted[p.Pod]; text != "" {
			sess.IO.Note("note: pod %s: %s", p.Pod, text)
		}
	}
	if err := showPlans(sess, o, plans); err != nil || !o.exitCode {
		return err
	}
	return exit.With(o.code(plans))
}

// unplanned returns a heading with the reason for each pod without a plan.
func unplanned(pods []model.PodRef, outcomes []error) []string {
	var texts []string
	for i, err := range outcomes {
		if err != nil && err.Error() != "" {
			texts = append(texts, fmt.Sprintf("Pod %s · unknown: %v", pods[i], err))
		}
	}
	return texts
}

// showSome prints the plans that could be made if others could not. It does not save them, because the file would seem
// complete.
func (o *planOptions) showSome(
	ctx context.Context, sess *session.Session, plans []*plan.Plan, unplanned []string, failure error,
) error {
	outcomes := []error{failure}
	if o.save != "" {
		outcomes = append(outcomes, errors.New("the plan is not saved, because it is incomplete"))
	}
	if len(plans) > 0 {
		outcomes = append(outcomes, showPlans(sess, o, plans))
		if o.isText() {
			for _, text := range unplanned {
				sess.IO.Print("\n%s", sess.ErrorText(errors.New(text)))
			}
		}
	}
	return exit.Join(ctx, outcomes...)
}

// isText reports whether the output is text, not a document or a drawing.
func (o *planOptions) isText() bool { return !terminal.IsDocument(o.output) && o.graph == "" }

// showPlans prints plans in the output format. It removes their basis, which only the saved file needs.
func showPlans(sess *session.Session, o *planOptions, plans []*plan.Plan) error {
	for _, p := range plans {
		p.Basis = nil
	}
	if terminal.IsDocument(o.output) {
		return terminal.WriteDocument(sess.IO.Out, o.output, o.document(plans))
	}
	switch o.graph {
	case "dot":
		return view.WriteDOT(sess.IO.Out, plans)
	case "svg":
		return view.WriteSVG(sess.IO.Out, plans)
	}
	if len(plans)+len(o.objects)+len(o.workloads)+len(o.skipped) == 0 && o.pruned == nil {
		sess.IO.Note("No pods %s.", o.Where(sess.Flags.Namespace))
	}
	text := &view.Plan{Out: sess.IO.Out, Colors: sess.IO.OutColors(), Unchanged: o.unchanged}
	if sess.IO.OutTTY {
		text.Width, _ = sess.IO.OutSize()
	}
	own, rest := o.plansOfWorkloads(plans)
	for i, p := range rest {
		if i > 0 || len(o.objects) > 0 {
			fmt.Fprintln(sess.IO.Out) //nolint:errcheck // a closed pipe ends the process
		}
		if err := text.Write(p); err != nil {
			return err
		}
	}
	if err := o.showWorkloads(sess, text, own, len(rest)+len(o.objects)); err != nil {
		return err
	}
	o.showPruned(sess)
	o.showTotal(sess, plans, len(rest)+len(own))
	return nil
}

// showTotal prints the total below several plans.
func (o *planOptions) showTotal(sess *session.Session, plans []*plan.Plan, things int) {
	if things+len(o.objects) < 2 {
		return
	}
	deleted := o.pruned.refs()
	for _, x := range o.workloads {
		deleted = append(deleted, x.Gone...)
	}
	gone := func(p *plan.Plan) bool { return o.deletes || slices.Contains(deleted, p.Pod) }
	sess.IO.Print("")
	sess.IO.PrintBold(view.GrandTotal(plans, documentsOf(o.workloads), o.objects, gone))
}

// document returns the plans with the changes to other objects.
func (o *planOptions) document(plans []*plan.Plan) any {
	if len(o.objects)+len(o.workloads)+len(o.skipped) == 0 && o.pruned == nil {
		return PlanDocument(plans)
	}
	if plans == nil {
		plans = []*plan.Plan{}
	}
	return struct {
		APIVersion string                `json:"apiVersion"`
		Kind       string                `json:"kind"`
		Objects    []view.ObjectChange   `json:"objects,omitempty"`
		Workloads  []view.WorkloadChange `json:"workloads,omitempty"`
		Prunes     []view.Prune          `json:"prunes,omitempty"`
		Skipped    []document.Skipped    `json:"skipped,omitempty"`
		Items      []*plan.Plan          `json:"items"`
	}{
		APIVersion: model.APIVersion,
		Kind:       "PlanList",
		Objects:    o.objects,
		Workloads:  documentsOf(o.workloads),
		Prunes:     o.pruned.documents(view.WouldBePruned),
		Skipped:    o.skipped,
		Items:      plans,
	}
}

// PlanDocument returns one plan as it is, and several as a list.
func PlanDocument(plans []*plan.Plan) any {
	if len(plans) == 1 {
		return plans[0]
	}
	return view.List("PlanList", plans)
}

// code returns the exit code: 2 if there are changes or a source file has changed, 3 if a step is held or pending, else
// 0. For several pods or objects it is the worst code.
func (o *planOptions) code(plans []*plan.Plan) int {
	code := exit.OK
	add := func(changes, waits bool) {
		switch {
		case changes:
			code = exit.Worst(code, exit.Pending)
		case waits:
			code = exit.Worst(code, exit.NotYet)
		}
	}
	for _, p := range plans {
		add(p.Pending() || p.Records() || p.Source != "", !p.Complete)
	}
	for i := range o.objects {
		add(o.objects[i].Outcome != objects.Unchanged, false)
	}
	for _, x := range o.workloads {
		add(x.Outcome != objects.Unchanged, len(x.Waits) > 0)
	}
	add(len(o.pruned.documents("")) > 0, false)
	return code
}

// planning converts the flags into options of the planner.
func (o *planOptions) planning() plan.Options {
	opts := plan.Options{IgnoreBackoff: o.ignore, KeepBasis: o.save != ""}
	if o.admission.Admit {
		opts.Admission = &plan.Admission{Settings: o.admission.Settings}
	}
	switch o.pull {
	case "always":
		opts.PullPolicy = "Always"
	case "missing":
		opts.PullPolicy = "IfNotPresent"
	case "never":
		opts.PullPolicy = "Never"
	}
	return opts
}
