package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
)

type planOptions struct {
	selection
	output    string
	exitCode  bool
	unchanged bool
	pull      string
	ignore    bool
	probe     bool
	save      string
	pin       bool
}

func newPlan(g *globals) *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan [flags] [MANIFEST|POD...]",
		Short: "Show what one sync pass would do now, and why",
		Long: "Show what one sync pass would do to pods now, and why. Nothing is changed.\n" +
			"Without arguments: every pod that podctl applied in the namespace." +
			exitCodes("0 done (with --exit-code: nothing to do)", "1 error", "2 --exit-code: there are steps",
				"3 --exit-code: nothing to do yet: held or waiting; of several pods for one of them", "5 refused manifest", "130 interrupted"),
		Example: "  podctl plan pod.yaml\n  podctl plan -o json pod.yaml | jq .steps\n  kubectl get pod web -o yaml | podctl plan -\n" +
			"  podctl plan --pin pod.yaml > pinned.yaml",
		ValidArgsFunction: g.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withUnread(cmd.Context(), runPlan(cmd, g, o, args))
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces, when none is named")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	f.BoolVar(&o.exitCode, "exit-code", false, "Exit with 2 when there are steps, with 3 when something is held or waited for")
	f.BoolVar(&o.unchanged, "show-unchanged", false, "Also list what stays as it is when nothing changes")
	f.Var(pullFlag(&o.pull), "pull", "Override the pull policy: always, missing or never")
	f.BoolVar(&o.ignore, "ignore-backoff", false, "Do not hold containers back after crashes")
	f.StringVar(&o.save, "save", "", "Write the plan to a file, for apply --plan")
	f.StringVar(&o.snapshot, "snapshot", "", "Plan for what a snapshot has, without a runtime")
	f.BoolVar(&o.probe, "probe", false, "Ask the pods' probes first")
	f.BoolVar(&o.pin, "pin", false, "Print the manifest instead, with the digests of the images that the runtime has; Secrets are left out")
	for _, other := range []string{"output", "exit-code", "show-unchanged", "pull", "ignore-backoff", "save", "snapshot", "probe"} {
		cmd.MarkFlagsMutuallyExclusive("pin", other)
	}
	return cmd
}

func runPlan(cmd *cobra.Command, g *globals, o *planOptions, args []string) error {
	ctx := cmd.Context()
	o.thorough = true
	if o.pin {
		return g.pin(ctx, slices.Concat(o.files, args))
	}
	if o.probe && o.snapshot != "" {
		return usagef("--probe asks containers that run, --snapshot has none")
	}
	if o.snapshot == "" {
		g.warm(ctx)
	}
	pods, world, err := g.observed(ctx, &o.selection, args)
	if err != nil {
		return err
	}
	var unasked error
	if o.probe {
		unasked = probeFirst(ctx, g.engine, pods)
	}
	if o.save != "" && o.snapshot == "" {
		// The plan is compared with one that another process makes.
		if err := g.engine.Digests.Keep(); err != nil {
			return err
		}
	}
	plans := make([]*plan.Plan, 0, len(pods))
	unknown := inTurn(ctx, pods, func(d *podspec.Desired) error {
		p, err := world.Plan(ctx, d, o.planning())
		if err == nil {
			plans = append(plans, p)
		}
		return err
	})
	if err := together(ctx, []error{unasked, unknown}); err != nil {
		return g.showSome(ctx, o, plans, err)
	}
	if o.save != "" {
		if err := savePlans(o.save, plans); err != nil {
			return err
		}
	}
	if err := g.showPlans(o, plans); err != nil || !o.exitCode {
		return err
	}
	return withCode(planCode(plans))
}

// showSome prints the plans that could be made, where others could not. They are saved
// nowhere: who executes the file would take it for all.
func (g *globals) showSome(ctx context.Context, o *planOptions, plans []*plan.Plan, why error) error {
	outcomes := []error{why}
	if o.save != "" {
		outcomes = append(outcomes, fmt.Errorf("the plan is not saved, as it would not be complete"))
	}
	if len(plans) > 0 {
		outcomes = append(outcomes, g.showPlans(o, plans))
	}
	return together(ctx, outcomes)
}

// showPlans prints plans in the format that was asked for. What they were made of
// is for the saved file alone.
func (g *globals) showPlans(o *planOptions, plans []*plan.Plan) error {
	for _, p := range plans {
		p.Basis = nil
	}
	if isDocument(o.output) {
		return writeDocument(g.env.Out, o.output, planDocument(plans))
	}
	if len(plans) == 0 {
		g.note("No pods in namespace %s.", g.namespace)
	}
	view := &planView{w: g.env.Out, paint: g.paint(g.env.OutTTY), now: g.env.Now(), unchanged: o.unchanged}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(g.env.Out) //nolint:errcheck // a closed pipe ends the process
		}
		if err := view.write(p); err != nil {
			return err
		}
	}
	return nil
}

// planDocument is one plan as it is, several as a list.
func planDocument(plans []*plan.Plan) any {
	if len(plans) == 1 {
		return plans[0]
	}
	return listDocument("PlanList", plans)
}

// planCode is of each plan 2 when it has steps, 3 when it has none and is held or waits,
// else 0; of several the worst.
func planCode(plans []*plan.Plan) int {
	code := exitOK
	for _, p := range plans {
		switch {
		case p.Pending():
			code = worst(code, exitPending)
		case !p.Complete:
			code = worst(code, exitNotYet)
		}
	}
	return code
}

func pullFlag(value *string) *choice {
	return &choice{value: value, allowed: []string{"always", "missing", "never", ""}}
}

// planning turns flags into the planner's words.
func (o *planOptions) planning() plan.Options {
	opts := plan.Options{IgnoreBackoff: o.ignore, KeepBasis: o.save != ""}
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
