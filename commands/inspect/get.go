package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
)

type getOptions struct {
	selection.Selection
	printer podPrinter
	watch   bool
	probe   bool
	// endpoints is set when the endpoints of Services are listed instead of the Services.
	endpoints bool
	// amongOthers is set for one of several kinds.
	amongOthers bool
}

// noteNone says that there is nothing of a kind.
func (o *getOptions) noteNone(sess *session.Session, kind string) {
	if !o.amongOthers {
		sess.IO.Note("No %ss %s.", strings.ToLower(kind), o.Where(sess.Flags.Namespace))
	}
}

// NewGet is `podctl get`.
func NewGet(sess *session.Session) *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:     "get [flags] [MANIFEST|POD...] | get [flags] KIND[,KIND...] [NAME...]",
		Aliases: []string{"ps"},
		Short:   "List pods and their status, or workloads, ConfigMaps, Secrets and claims",
		Long: "List pods with the status that a kubelet would report. Without arguments, pods that other tools created on the same\n" +
			"runtime are listed too, for example those of a kubelet (see OWNER). podctl never changes them.\n" +
			"KIND is pods, a workload such as deployments (deploy), statefulsets (sts), daemonsets (ds) or jobs, or configmaps (cm),\n" +
			"secrets or pvc; KIND/NAME names one object, and all stands for pods, Services and workloads.\n" +
			"The kind endpoints (ep) lists where the traffic of Services goes, and which of their pods are not ready. Listed are ConfigMaps, Secrets and claims that were applied apart from\n" +
			"pods, and claims that have data. Values of Secrets are not printed, with -o neither." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example: "  podctl get\n  podctl get -A -o wide --sort-by .status.startTime\n  podctl get web -o yaml\n" +
			"  podctl get web -o jsonpath='{.status.podIP}'\n  podctl get -o custom-columns=NAME:.metadata.name,IP:.status.podIP\n" +
			"  podctl get -l app=web -L tier\n  podctl get -w --containers\n" +
			"  podctl get all\n  podctl get deployments,pods -o wide\n  podctl get configmaps -A -o wide\n  podctl get cm/web -o yaml",
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), sess, o, args) },
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	o.RegisterSelectors(f, "All namespaces")
	f.BoolVar(&o.printer.containers, "containers", false, "One line per container")
	f.BoolVarP(&o.watch, "watch", "w", false, "Watch for changes")
	f.BoolVar(&o.probe, "probe", false, "Run the pods' probes first")
	f.StringVar(&o.printer.sortBy, "sort-by", "", "Sort by a field given as a JSONPath, for example .status.startTime")
	f.BoolVar(&o.printer.noHeaders, "no-headers", false, "Do not print headers")
	f.StringVar(&o.Snapshot, "snapshot", "", "Show a snapshot file instead of a runtime")
	f.BoolVar(&o.printer.ShowLabels, "show-labels", false, "Add a column with all labels")
	f.StringSliceVarP(&o.printer.Labels, "label-columns", "L", nil, "Add a column with the value of a label (repeatable)")
	f.VarP(&flags.TemplateOutput{Choice: flags.Output(&o.printer.output, "wide", "json", "yaml", "name")}, "output", "o",
		"Output format: text, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=COLUMNS, or one of these two with -file=FILE")
	return cmd
}

func runGet(ctx context.Context, sess *session.Session, o *getOptions, args []string) error {
	if kinds := selection.SplitKinds(args); kinds != nil {
		return runGetKinds(ctx, sess, o, kinds)
	}
	if services, ok := endpointArgs(args); ok {
		args, o.endpoints = services, true
	}
	targets, err := selection.ParseTargets(args, sess.Flags.Namespace)
	if err != nil {
		return err
	}
	if podspec.KindNamed(targets.Kind()).Workload || len(targets.Workloads) > 0 {
		return runGetWorkloads(ctx, sess, o, &targets)
	}
	if kind := targets.Kind(); kind != "" && kind != podspec.KindPod || len(targets.Objects) > 0 {
		return runGetObjects(ctx, sess, o, &targets)
	}
	return runGetPods(ctx, sess, o, targets.Pods)
}

func runGetPods(ctx context.Context, sess *session.Session, o *getOptions, args []string) error {
	if o.Snapshot != "" && (o.watch || o.probe) {
		return exit.Usagef("--watch and --probe cannot be used with --snapshot")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	o.For = selection.List
	o.printer.single, o.printer.namespaces = len(args) == 1, o.AllNamespaces
	observed, err := o.Observe(ctx, sess, args)
	if err != nil {
		return err
	}
	look := &podLook{sess: sess, o: o, named: len(args)+len(o.Files) > 0, observed: observed}
	pods, unknown := look.pods(ctx)
	if pods == nil && unknown != nil {
		return unknown
	}
	if len(pods) == 0 && !o.watch && o.printer.isTable() {
		o.noteNone(sess, "pod")
		return nil
	}
	if err := o.printer.print(pods); err != nil || !o.watch {
		return exit.Join(ctx, err, unknown)
	}
	look.note(unknown)
	return look.follow(ctx)
}

// podLook is one look, or several, at the pods that get shows.
type podLook struct {
	sess *session.Session
	o    *getOptions
	// named reports whether the command line names what to show.
	named    bool
	observed *selection.Observed
}

// pods observes what there is now. With an error there are the pods that it does not keep
// from being shown; nil for none.
func (l *podLook) pods(ctx context.Context) ([]*v1.Pod, error) {
	desired := l.observed.Pods
	if l.observed.Engine != nil && !l.named {
		foreign, err := l.foreign(ctx)
		if err != nil {
			return nil, err
		}
		desired = slices.SortedFunc(slices.Values(slices.Concat(desired, foreign)), func(a, b *podspec.Desired) int {
			return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod))
		})
	}
	var probed error
	if l.o.probe {
		probed = selection.ProbeFirst(ctx, l.observed.Engine, desired...)
	}
	pods, unknown := l.observed.Observer.List(ctx, desired)
	if pods == nil {
		return nil, unknown
	}
	pods, err := l.o.ByStatus(pods)
	if err == nil {
		err = sortByField(l.o.printer.sortBy, "pod", pods, func(pod *v1.Pod) any { return pod })
	}
	if err != nil {
		return nil, err
	}
	return pods, exit.Join(ctx, probed, unknown)
}

// note says once why something is not known of pods.
func (l *podLook) note(err error) {
	if err != nil {
		l.sess.IO.NoteOnce("note: %s", l.sess.ErrorText(err))
	}
}

// foreign lists the pods of others that the selection lets through. A pod of
// podctl's is never taken for one, whatever the namespace of the selection.
func (l *podLook) foreign(ctx context.Context) ([]*podspec.Desired, error) {
	own, err := selection.Applied(l.sess)
	if err != nil {
		return nil, err
	}
	found, err := l.observed.Engine.Lister.Unmanaged(ctx, selection.UIDs(own))
	if err != nil {
		return nil, err
	}
	return l.o.Filter(found, l.sess.Flags.Namespace)
}

// follow shows what changes, until it is interrupted: one line or document for each
// pod or container that is not as it was shown last.
func (l *podLook) follow(ctx context.Context) error {
	for terminal.Sleep(ctx, terminal.WatchInterval) {
		err := l.refresh(ctx)
		if gone := (*cri.UnavailableError)(nil); errors.As(err, &gone) {
			// It may be restarted; a watch shows what is there when it is back.
			continue
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return session.WatchEnded(ctx)
}

func (l *podLook) refresh(ctx context.Context) error {
	if !l.named {
		found, err := l.o.Applied(ctx, l.sess)
		if err != nil {
			return err
		}
		l.observed.Found = found
	}
	pods, err := l.pods(ctx)
	if pods == nil && err != nil {
		return err
	}
	l.note(err)
	return l.o.printer.printChanged(pods)
}
