package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/wait"
)

type applyOptions struct {
	planOptions
	all      bool
	wait     string
	dryRun   bool
	parallel int
	plan     string
	kubelet  bool
}

func newApply(g *globals) *cobra.Command {
	o := &applyOptions{}
	cmd := &cobra.Command{
		Use:   "apply [flags] MANIFEST...",
		Short: "Make one sync pass: do what plan shows",
		Long: "Make one sync pass over pods: exactly what plan shows, one step of the way per call.\n" +
			"With --wait, passes are made until the pod is started, ready or completed. With --all, what was applied last is\n" +
			"applied again; a warning says where a manifest's file has changed since." +
			exitCodes("0 done", "1 error", "3 --wait: not there in time, or it cannot get there; --exit-code: there were steps, or something is held or waited for",
				"5 refused manifest", "130 interrupted"),
		Example:           "  podctl apply pod.yaml\n  podctl apply --wait --timeout 2m pod.yaml\n  podctl apply --all --probe   # from a timer",
		ValidArgsFunction: completeManifests,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withUnread(cmd.Context(), runApply(cmd, g, o, args))
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVar(&o.all, "all", false, "Every pod that podctl applied, from its stored copy")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "With --all: pods of all namespaces")
	addWaitFlag(cmd, &o.wait)
	f.StringVar(&o.plan, "plan", "", "Execute a plan that plan --save wrote, if nothing has changed since")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Go on although a kubelet runs on the same runtime and may kill the pods")
	f.BoolVar(&o.dryRun, "dry-run", false, "The same as plan")
	f.IntVar(&o.parallel, "parallel", 4, "How many pods are worked on at a time")
	f.Var(pullFlag(&o.pull), "pull", "Override the pull policy: always, missing or never")
	f.BoolVar(&o.probe, "probe", false, "Ask the pods' probes first")
	f.BoolVar(&o.ignore, "ignore-backoff", false, "Do not hold containers back after crashes")
	f.BoolVar(&o.exitCode, "exit-code", false, "Without --wait: exit with 3 unless there was nothing to do, and nothing is held or waited for")
	f.VarP(outputFlag(&o.output, "json"), "output", "o", "Output format: text, or json: one event per line")
	return cmd
}

func addWaitFlag(cmd *cobra.Command, goal *string) {
	f := cmd.Flags()
	f.Var(&choice{value: goal, allowed: []string{"started", "ready", "completed"}}, "wait", "Make passes until the pod is started, ready or completed")
	f.Lookup("wait").NoOptDefVal = "ready"
}

func runApply(cmd *cobra.Command, g *globals, o *applyOptions, args []string) error {
	o.thorough = true
	if o.dryRun {
		return runPlan(cmd, g, &o.planOptions, args)
	}
	ctx := cmd.Context()
	if g.warm(ctx); g.engine != nil && !o.kubelet {
		go g.engine.Host.CheckKubelet() //nolint:errcheck // the pass asks for it
	}
	pods, err := g.applyTargets(ctx, o, args)
	if err != nil {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	a := &applier{g: g, o: o, engine: engine, several: len(pods) > 1}
	if o.all {
		a.changed = sourceChanges(ctx, pods)
	}
	if o.plan != "" {
		if a.saved, err = g.readSaved(ctx, o.plan); err != nil {
			return err
		}
	}
	return a.run(ctx, pods)
}

// withTimeout bounds a command; the end of the time is told from an interrupt by
// its cause.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s (--timeout)", timeout))
}

func (g *globals) applyTargets(ctx context.Context, o *applyOptions, args []string) ([]*podspec.Desired, error) {
	switch {
	case o.plan != "" && (o.wait != "" || o.all || o.probe):
		return nil, usagef("--plan is one pass of what was planned: it goes with neither --wait nor --all nor --probe")
	case o.all && len(args)+len(o.files) > 0:
		return nil, usagef("--all takes no manifest")
	case o.all:
		return g.allApplied(o.selection)
	case len(args)+len(o.files) == 0:
		return nil, usagef("apply needs a manifest, or --all")
	}
	return g.desired(ctx, o.selection, args)
}

// applier applies several pods side by side.
type applier struct {
	g       *globals
	o       *applyOptions
	engine  *runtime.Engine
	several bool
	saved   savedPlans
	// changed says of pods how their source files differ from what is applied.
	changed map[model.PodRef]string
}

func (a *applier) run(ctx context.Context, pods []*podspec.Desired) error {
	return together(ctx, sideBySide(pods, a.o.parallel, func(d *podspec.Desired) error { return a.one(ctx, d) }))
}

func (a *applier) one(ctx context.Context, d *podspec.Desired) error {
	if a.o.probe {
		if err := probeFirst(ctx, a.engine, []*podspec.Desired{d}); err != nil {
			return err
		}
	}
	began := a.g.env.Now()
	opts := a.options()
	if text := a.changed[model.RefOf(d.Pod)]; text != "" {
		opts.Report(a.warning(model.RefOf(d.Pod), text))
	}
	if a.saved != nil {
		saved, err := a.saved.of(d)
		if err != nil {
			return err
		}
		opts.Saved = saved
	}
	var outcome *executor.Outcome
	var err error
	if a.o.wait != "" {
		outcome, err = a.engine.Waiter.Wait(ctx, d, wait.Goal(a.o.wait), opts)
	} else {
		outcome, err = a.engine.Pods.Apply(ctx, d, opts)
	}
	return a.conclude(d, outcome, err, began)
}

func (a *applier) options() executor.Options {
	opts := executor.Options{Options: a.o.planning(), AllowKubelet: a.o.kubelet}
	opts.Report = a.g.progress(a.several)
	if a.o.output == "json" {
		opts.Report = a.g.writeEvent
	}
	opts.Planned = a.remarksTo(opts.Report)
	return opts
}

// remarksTo reports the remarks of plans before anything of them is done, each once
// however many plans a wait makes.
func (a *applier) remarksTo(report func(executor.Event)) func(*plan.Plan) {
	told := map[string]bool{}
	return func(p *plan.Plan) {
		for _, text := range remarks(p) {
			if !told[text] {
				told[text] = true
				report(a.warning(p.Pod, text))
			}
		}
	}
}

// warning tells of something that is no step's.
func (a *applier) warning(pod model.PodRef, text string) executor.Event {
	return executor.Event{Kind: executor.Warning, Pod: pod, Time: a.g.env.Now(), Detail: text}
}

// conclude says what became of the pod, and what is left.
func (a *applier) conclude(d *podspec.Desired, outcome *executor.Outcome, err error, began time.Time) error {
	if err != nil {
		return leftOver(outcome, err)
	}
	if failure := outcome.Err(); failure != nil {
		return failure
	}
	p := outcome.Plan
	if a.o.output != "json" {
		a.g.print("pod %s %s", model.RefOf(d.Pod), a.verdict(p, began))
	}
	if a.o.exitCode && a.o.wait == "" && !p.Complete {
		return withCode(exitNotYet)
	}
	return nil
}

func (a *applier) verdict(p *plan.Plan, began time.Time) string {
	took := a.g.env.Now().Sub(began).Seconds()
	switch {
	case a.o.wait != "":
		return fmt.Sprintf("is %s (%.1fs)", a.o.wait, took)
	case len(p.Steps) == 0 && p.Complete:
		return "unchanged"
	case len(p.Steps) == 0 && len(p.Holds) > 0:
		return "held: " + holdTexts(p)
	case len(p.Steps) == 0:
		return "waits for " + strings.Join(p.WaitingFor, ", ")
	}
	text := "applied: " + strings.TrimSuffix(strings.TrimPrefix(summaryLine(p), "Plan: "), ".")
	text = strings.NewReplacer("to replace", "replaced", "to start", "started", "to stop", "stopped", "to update", "updated", "to remove", "removed").Replace(text)
	if len(p.Later) > 0 {
		text += "; later " + p.Later[0]
	}
	return text
}

func holdTexts(p *plan.Plan) string {
	var texts []string
	for i := range p.Holds {
		h := &p.Holds[i]
		texts = append(texts, strings.TrimSpace(h.Container+" "+holdAction(h)+" ("+holdComment(h)+")"))
	}
	return strings.Join(texts, ", ")
}

// leftError is an error after which something was not done.
type leftError struct {
	err  error
	left string
}

// Error says what happened and what is left.
func (e *leftError) Error() string { return e.err.Error() + e.Left() }

// Left says what was not done.
func (e *leftError) Left() string {
	return "; not done: " + e.left + "; call it again to go on"
}

func (e *leftError) Unwrap() error { return e.err }

// leftOver adds to an error what was not done.
func leftOver(outcome *executor.Outcome, err error) error {
	if outcome == nil || len(outcome.Skipped) == 0 {
		return err
	}
	var left []string
	for i := range outcome.Plan.Steps {
		s := &outcome.Plan.Steps[i]
		if s.Kind != plan.CheckContainer && slices.Contains(outcome.Skipped, s) {
			left = append(left, s.Kind.Verb()+" "+s.Object())
		}
	}
	return &leftError{err: err, left: strings.Join(left, ", ")}
}

// probeFirst asks the probes of pods, so that the plan knows their answers.
func probeFirst(ctx context.Context, engine *runtime.Engine, pods []*podspec.Desired) error {
	return inTurn(ctx, pods, func(d *podspec.Desired) error {
		_, err := engine.Prober.Probe(ctx, d, probe.Options{Due: true})
		return err
	})
}
