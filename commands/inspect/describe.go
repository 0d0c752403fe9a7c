package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

type describeOptions struct {
	selection.Selection
	timeline bool
	output   string
}

// NewDescribe returns the command `podctl describe`.
func NewDescribe(sess *session.Session) *cobra.Command {
	o := &describeOptions{}
	cmd := &cobra.Command{
		Use:   "describe [flags] MANIFEST|POD|KIND/NAME... | describe [flags] KIND[,KIND...] [NAME...]",
		Short: "Show details of pods, workloads, Services, ConfigMaps, Secrets and claims",
		Long: "Show the containers, conditions, volumes and events of pods, and what the next apply would change. " +
			"Workloads are shown\nwith their pods, Services with their endpoints, and Secrets without their values. " +
			"KIND without names selects all\nobjects of that kind in the namespace.\n" +
			"\n" +
			"With --timeline, show how long each part of the last start took. Several pods share one time scale." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example: "  podctl describe web\n" +
			"  podctl describe deployment/web\n" +
			"  podctl describe svc web\n" +
			"  podctl describe cm,secrets\n" +
			"  podctl describe -o json web | jq .status.phase\n" +
			"  podctl describe web --timeline\n" +
			"  podctl describe --all --timeline -o svg > starts.svg",
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              flags.Run(sess, o, runDescribe),
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	f.BoolVar(&o.All, "all", false, "Describe all pods that podctl applied in the namespace")
	o.RegisterSelectors(f, "All namespaces (with --all or a selector)")
	f.BoolVar(&o.timeline, "timeline", false, "Show how long each part of the last start took")
	f.VarP(flags.Output(&o.output, "json", "yaml", "svg"), "output", "o",
		"Output format: text, json or yaml; with --timeline: text or svg")
	return cmd
}

func runDescribe(ctx context.Context, sess *session.Session, o *describeOptions, args []string) error {
	switch {
	case o.IsEmpty(args):
		return exit.Usagef("describe needs a manifest or a pod, --all, or a selector")
	case o.output == "svg" && !o.timeline:
		return exit.Usagef("-o svg needs --timeline")
	case terminal.IsDocument(o.output) && o.timeline:
		return exit.Usagef("--timeline takes -o text or svg")
	}
	targets, err := selection.ParseTargets(args, sess.Flags.Namespace)
	if err == nil {
		err = o.checkTargets(&targets)
	}
	if err != nil {
		return err
	}
	failed := o.AddStored(sess, &targets)
	if terminal.IsText(o.output) && !o.timeline {
		failed = errors.Join(failed,
			describeWorkloads(ctx, sess, targets.Workloads),
			describeObjects(ctx, sess, targets.Objects))
	}
	names, err := podNamesOf(sess, &targets)
	if err != nil {
		return errors.Join(failed, err)
	}
	if len(names) == 0 && len(args) > 0 && !o.Manifests() && !slices.Contains(targets.Kinds, podspec.KindPod) {
		return failed
	}
	return exit.Join(ctx, failed, o.describePods(ctx, sess, names))
}

// checkTargets returns an error for targets that the output format or the flags do not allow.
func (o *describeOptions) checkTargets(targets *selection.Targets) error {
	withoutPods := slices.ContainsFunc(targets.Kinds, func(kind string) bool {
		return !podspec.KindNamed(kind).HasPods()
	})
	switch {
	case (len(targets.Objects) > 0 || withoutPods) && (o.timeline || !terminal.IsText(o.output)):
		return exit.Usagef("-o and --timeline are for pods and workloads: `podctl get -o yaml` prints other objects")
	case o.Selects() && len(targets.Objects)+len(targets.Workloads) > 0:
		return exit.Usagef("--selector and --field-selector cannot be used with names")
	case len(targets.Kinds) > 0 && o.Manifests():
		return exit.Usagef("kinds cannot be used with manifests")
	}
	return nil
}

// podNamesOf returns the named pods, and the workloads that have pods. describe shows the pods of these workloads, too.
func podNamesOf(sess *session.Session, targets *selection.Targets) ([]string, error) {
	names := targets.Pods
	if len(targets.Workloads) == 0 {
		return names, nil
	}
	applied, err := selection.Applied(sess)
	for _, key := range targets.Workloads {
		if slices.ContainsFunc(applied, func(d *podspec.Desired) bool { return controller.OwnsPod(key, d) }) {
			names = append(names, key.Word()+"/"+key.Namespace+"/"+key.Name)
		}
	}
	return names, err
}

func (o *describeOptions) describePods(ctx context.Context, sess *session.Session, args []string) error {
	o.For = selection.Show
	desired, err := o.Pods(ctx, sess, args...)
	if err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	if len(desired) == 0 {
		sess.IO.Note("No pods %s.", o.Where(sess.Flags.Namespace))
		return nil
	}
	pods, unknown := engine.Lister.List(ctx, desired)
	if pods == nil {
		return unknown
	}
	r := &describer{io: sess.IO, engine: engine, layout: sess.Flags.Layout(), o: o}
	outcomes := []error{unknown}
	if terminal.IsDocument(o.output) {
		return exit.Join(ctx, append(outcomes, r.documents(ctx, desired, pods))...)
	}
	if o.timeline {
		return exit.Join(ctx, append(outcomes, r.timelines(pods))...)
	}
	for i, d := range desired {
		if i > 0 {
			sess.IO.Print("")
		}
		outcomes = append(outcomes, r.describe(ctx, d, pods[i]))
	}
	return exit.Join(ctx, outcomes...)
}

type describer struct {
	io     *terminal.IO
	engine *runtime.Engine
	layout state.Layout
	o      *describeOptions
}

// history returns the history of a pod. If it cannot be read, history prints a note and returns an empty one.
func (r *describer) history(pod *v1.Pod) *state.History {
	h, err := events.History(r.layout, model.RefOf(pod))
	if err != nil {
		r.io.Note("note: %v", err)
		return &state.History{}
	}
	return h
}

// timelines draws the last starts of pods.
func (r *describer) timelines(pods []*v1.Pod) error {
	var all []*events.Timeline
	for _, pod := range pods {
		all = append(all, events.NewTimeline(pod, r.history(pod)))
	}
	v := view.NewTimelines(all)
	if r.o.output == "svg" {
		return v.WriteSVG(r.io.Out)
	}
	return v.WriteText(r.io.Out, r.io.OutColors())
}

// next returns the plan of the next apply. It is nil for a pod that podctl cannot observe or did not apply.
func (r *describer) next(ctx context.Context, d *podspec.Desired, pod *v1.Pod) (*plan.Plan, error) {
	return r.plan(ctx, d, pod, plan.Options{})
}

func (r *describer) plan(
	ctx context.Context, d *podspec.Desired, pod *v1.Pod, opts plan.Options,
) (*plan.Plan, error) {
	if d.Rebuilt || pod.Status.Phase == v1.PodUnknown {
		return nil, nil
	}
	return r.engine.Pods.Plan(ctx, d, opts)
}

func (r *describer) describe(ctx context.Context, d *podspec.Desired, pod *v1.Pod) error {
	h := r.history(pod)
	v := &description{now: r.io.Now()}
	v.pod(d, pod)
	p, unknown := r.next(ctx, d, pod)
	v.next(p, unknown)
	v.events(h, pod)
	_, err := fmt.Fprint(r.io.Out, v.text.String())
	return errors.Join(unknown, err)
}

// next writes what the next apply would do.
func (v *description) next(p *plan.Plan, err error) {
	if err != nil {
		v.field(0, "Next apply", "not known: %v", err)
	}
	if p == nil {
		return
	}
	v.field(0, "Next apply", "%s", view.NextApply(p))
	for _, drift := range p.Drift {
		v.field(0, "Drift", "%s", drift)
	}
	for _, note := range p.Notes {
		v.field(0, "Note", "%s", note)
	}
}
