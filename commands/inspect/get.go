package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
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
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
)

type getOptions struct {
	selection.Selection
	printer printer
	watch   bool
	probe   bool
	// endpoints is set to list the endpoints of Services instead of the Services.
	endpoints bool
	// amongOthers is set while get lists several kinds.
	amongOthers bool
}

// lists returns the table settings from the flags.
func (o *getOptions) lists() *view.Lists {
	p := &o.printer
	return &view.Lists{
		Now:          p.io.Now(),
		Wide:         p.output == "wide",
		Namespaces:   o.AllNamespaces,
		LabelColumns: p.LabelColumns,
	}
}

// noteNone prints that there are no objects of a kind. It prints nothing while get lists several kinds.
func (o *getOptions) noteNone(sess *session.Session, kind string) {
	if !o.amongOthers {
		sess.IO.Note("No %ss %s.", strings.ToLower(kind), o.Where(sess.Flags.Namespace))
	}
}

// NewGet returns the command `podctl get`.
func NewGet(sess *session.Session) *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:     "get [flags] [MANIFEST|POD...] | get [flags] KIND[,KIND...] [NAME...]",
		Aliases: []string{"ps"},
		Short:   "List pods, workloads, Services, ConfigMaps, Secrets and claims",
		Long: "List pods with the status that a kubelet would report. " +
			"Without arguments, the list includes pods that other tools\ncreated on the same runtime, " +
			"for example a kubelet (see MANAGER). podctl never changes these pods.\n" +
			"\n" +
			"KIND is pods, a workload such as deployments (deploy), statefulsets (sts), daemonsets (ds) or jobs, " +
			"or services (svc),\nendpoints (ep), configmaps (cm), secrets or pvc. " +
			"Use KIND/NAME for one object, and all for pods, Services and\nworkloads. " +
			"Endpoints show where the traffic of a Service goes, and which of its pods are not ready. " +
			"ConfigMaps,\nSecrets and claims are listed if they were applied separately from pods. " +
			"Claims are also listed if they have data.\n" +
			"Values of Secrets are never printed, not even with -o." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example: "  podctl get\n" +
			"  podctl get -A -o wide --sort-by .status.startTime\n" +
			"  podctl get web -o yaml\n" +
			"  podctl get web -o jsonpath='{.status.podIP}'\n" +
			"  podctl get -o custom-columns=NAME:.metadata.name,IP:.status.podIP\n" +
			"  podctl get -l app=web -L tier\n" +
			"  podctl get -w --containers\n" +
			"  podctl get all\n" +
			"  podctl get deployments,pods -o wide\n" +
			"  podctl get configmaps -A -o wide\n" +
			"  podctl get cm/web -o yaml",
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              flags.Run(sess, o, runGet),
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	o.RegisterSelectors(f, "All namespaces")
	f.BoolVar(&o.printer.containers, "containers", false, "Print one line per container")
	f.BoolVarP(&o.watch, "watch", "w", false, "Watch for changes")
	f.BoolVar(&o.probe, "probe", false, "Run the pods' probes first")
	f.StringVar(&o.printer.sortBy, "sort-by", "", "Sort by a field, given as a JSONPath such as .status.startTime")
	f.BoolVar(&o.printer.noHeaders, "no-headers", false, "Do not print headers")
	f.StringVar(&o.Snapshot, "snapshot", "", "Read this snapshot file instead of the runtime")
	f.BoolVar(&o.printer.ShowLabels, "show-labels", false, "Add a column with all labels")
	f.StringSliceVarP(&o.printer.Labels, "label-columns", "L", nil,
		"Add a column with the value of a label (repeatable)")
	output := flags.Output(&o.printer.output, "wide", "json", "yaml", "name")
	f.VarP(&flags.TemplateOutput{Choice: output}, "output", "o",
		"Output format: text, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=COLUMNS, "+
			"or one of the last two with -file=FILE")
	return cmd
}

func runGet(ctx context.Context, sess *session.Session, o *getOptions, args []string) error {
	if kinds := selection.SplitKinds(args, endpointWords()...); kinds != nil {
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

// follow prints changes until it is interrupted: one line or document for each item that differs from its last output.
func (o *getOptions) follow(
	ctx context.Context, sess *session.Session, look func(context.Context) (*listing, error),
) error {
	for terminal.Sleep(ctx, terminal.WatchInterval) {
		found, err := look(ctx)
		if ctx.Err() != nil {
			break
		}
		if found == nil {
			// The runtime may be restarting. The watch continues when it is back.
			if gone := (*cri.UnavailableError)(nil); err != nil && !errors.As(err, &gone) {
				return err
			}
			continue
		}
		if err != nil {
			sess.IO.NoteOnce("note: %s", sess.ErrorText(err))
		}
		if err := o.printer.printChanged(found); err != nil {
			return err
		}
	}
	return session.WatchEnded(ctx)
}

// runGetKinds lists objects of several kinds: a table for each kind, or one document.
func runGetKinds(ctx context.Context, sess *session.Session, o *getOptions, kinds [][]string) error {
	if o.watch || o.Snapshot != "" || len(o.Files) > 0 {
		return exit.Usagef("--watch, --snapshot and --filename cannot be used with several kinds")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	if !o.printer.isTable() && o.printer.output != "name" {
		return getKindsDocument(ctx, sess, o, kinds)
	}
	out := &partsWriter{out: sess.IO.Out, apart: o.printer.isTable()}
	err := eachKind(ctx, o, kinds, func(one *getOptions, args []string) error {
		out.begun = false
		return writingTo(sess, out, func() error { return runGet(ctx, sess, one, args) })
	})
	if err == nil && !out.any {
		sess.IO.Note("No resources found %s.", o.Where(sess.Flags.Namespace))
	}
	return err
}

// eachKind calls get for each kind. A kind without objects prints nothing.
func eachKind(
	ctx context.Context, o *getOptions, kinds [][]string, get func(one *getOptions, args []string) error,
) error {
	var outcomes []error
	for _, args := range kinds {
		one := *o
		one.amongOthers = true
		outcomes = append(outcomes, get(&one, args))
	}
	return exit.Join(ctx, outcomes...)
}

// getKindsDocument prints a List of the objects of several kinds.
func getKindsDocument(ctx context.Context, sess *session.Session, o *getOptions, kinds [][]string) error {
	items := []any{}
	missing := eachKind(ctx, o, kinds, func(one *getOptions, args []string) error {
		one.printer.output, one.printer.template = "json", nil
		var text bytes.Buffer
		err := writingTo(sess, &text, func() error { return runGet(ctx, sess, one, args) })
		if text.Len() == 0 {
			return err
		}
		var document map[string]any
		if bad := json.Unmarshal(text.Bytes(), &document); bad != nil {
			return bad
		}
		if of, isList := document["items"].([]any); isList {
			items = append(items, of...)
		} else {
			items = append(items, document)
		}
		return err
	})
	document := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
	if o.printer.template != nil {
		return exit.Join(ctx, o.printer.executeTemplate(document), missing)
	}
	return exit.Join(ctx, terminal.WriteDocument(sess.IO.Out, o.printer.output, document), missing)
}

// writingTo redirects the output of the session to out while do runs.
func writingTo(sess *session.Session, out io.Writer, do func() error) error {
	before := sess.IO.Out
	sess.IO.Out = out
	defer func() { sess.IO.Out = before }()
	return do()
}

// partsWriter writes several parts. If apart is set, it writes an empty line between parts that are not empty.
type partsWriter struct {
	out        io.Writer
	apart      bool
	any, begun bool
}

func (p *partsWriter) Write(text []byte) (int, error) {
	if p.apart && p.any && !p.begun {
		if _, err := io.WriteString(p.out, "\n"); err != nil {
			return 0, err
		}
	}
	p.any, p.begun = true, true
	return p.out.Write(text)
}

func runGetPods(ctx context.Context, sess *session.Session, o *getOptions, args []string) error {
	if o.Snapshot != "" && (o.watch || o.probe) {
		return exit.Usagef("--watch and --probe cannot be used with --snapshot")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	o.For = selection.List
	observed, err := o.Observe(ctx, sess, args)
	if err != nil {
		return err
	}
	look := &podLook{sess: sess, o: o, single: len(args) == 1, named: len(args)+len(o.Files) > 0, observed: observed}
	found, unknown := look.now(ctx)
	if found == nil {
		return unknown
	}
	if len(found.items) == 0 && !o.watch && o.printer.isTable() {
		o.noteNone(sess, "pod")
		return nil
	}
	if err := o.printer.print(found); err != nil || !o.watch {
		return exit.Join(ctx, err, unknown)
	}
	if unknown != nil {
		sess.IO.NoteOnce("note: %s", sess.ErrorText(unknown))
	}
	return o.follow(ctx, sess, look.again)
}

// podLook observes the pods that get shows, once or repeatedly.
type podLook struct {
	sess *session.Session
	o    *getOptions
	// named is set if the command line names pods, single if it names exactly one.
	named, single bool
	observed      *selection.Observed
}

// now observes the current pods. With an error it returns the pods that could be observed, or nil if there are none.
func (l *podLook) now(ctx context.Context) (*listing, error) {
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
	if pods == nil && unknown != nil {
		return nil, unknown
	}
	pods, err := l.o.ByStatus(pods)
	if err == nil {
		err = sortByField(l.o.printer.sortBy, "pod", pods, func(pod *v1.Pod) any { return pod })
	}
	if err != nil {
		return nil, err
	}
	found := &listing{single: l.single, list: view.PodList[any]}
	for _, pod := range pods {
		found.items = append(found.items, listed{"pod/" + pod.Name, pod, string(pod.UID) + pod.Status.String()})
	}
	found.table = func() ([]string, []view.Row, error) {
		v := l.o.lists()
		table := v.Pods
		if l.o.printer.containers {
			table = v.Containers
		}
		header, rows := table(pods)
		return header, rows, nil
	}
	return found, exit.Join(ctx, probed, unknown)
}

// foreign returns the pods of other tools that the selection includes. It never includes a pod of podctl, so it
// compares with the pods of all namespaces.
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

// again observes the pods like now, but first looks for pods that were applied since.
func (l *podLook) again(ctx context.Context) (*listing, error) {
	if !l.named {
		found, err := l.o.Applied(ctx, l.sess)
		if err != nil {
			return nil, err
		}
		l.observed.Found = found
	}
	return l.now(ctx)
}
