package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/cri"
)

type getOptions struct {
	selection
	printer podPrinter
	watch   bool
	probe   bool
}

func newGet(g *globals) *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:     "get [flags] [MANIFEST|POD...]",
		Aliases: []string{"ps"},
		Short:   "List pods with their status",
		Long: "List pods with the status a kubelet would report: those that podctl applied, and unless some are named also\n" +
			"those of others, a kubelet's for example, which podctl only looks at (see OWNER)." +
			exitCodes("0 done", "1 error", "5 refused manifest", "130 interrupted"),
		Example: "  podctl get\n  podctl get -A -o wide --sort-by .status.startTime\n  podctl get web -o yaml\n" +
			"  podctl get web -o jsonpath='{.status.podIP}'\n  podctl get -w --containers",
		ValidArgsFunction: g.completeTargets,
		RunE:              func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces")
	f.StringVarP(&o.labels, "selector", "l", "", "Only pods whose labels match, for example app=web,tier!=db")
	f.BoolVar(&o.printer.containers, "containers", false, "One line for each container")
	f.BoolVarP(&o.watch, "watch", "w", false, "Go on showing what changes")
	f.BoolVar(&o.probe, "probe", false, "Ask the pods' probes first")
	f.StringVar(&o.printer.sortBy, "sort-by", "", "Sort by a field, as a JSONPath: .metadata.name, .status.startTime")
	f.BoolVar(&o.printer.noHeaders, "no-headers", false, "Leave out the headers")
	f.StringVar(&o.snapshot, "snapshot", "", "Show what a snapshot has, without a runtime")
	f.VarP(&pathOutput{outputFlag(&o.printer.output, "wide", "json", "yaml", "name")}, "output", "o",
		"Output format: text, wide, json, yaml, name or jsonpath=TEMPLATE")
	return cmd
}

func runGet(ctx context.Context, g *globals, o *getOptions, args []string) error {
	if o.snapshot != "" && (o.watch || o.probe) {
		return usagef("--watch and --probe ask containers that run, --snapshot has none")
	}
	if o.labels != "" && len(args)+len(o.files) > 0 {
		return usagef("--selector picks among all pods, so it goes with no names and no manifests")
	}
	o.quiet = true
	o.printer.g, o.printer.single, o.printer.namespaces = g, len(args) == 1, o.allNamespaces
	desired, world, err := g.observed(ctx, &o.selection, args)
	if err != nil {
		return err
	}
	look := &podLook{g: g, o: o, named: len(args)+len(o.files) > 0, desired: desired, world: world}
	pods, unknown := look.pods(ctx)
	if pods == nil && unknown != nil {
		return unknown
	}
	if len(pods) == 0 && !o.watch && o.printer.isTable() {
		g.note("No pods %s.", o.where(g.namespace))
		return nil
	}
	if err := o.printer.print(pods); err != nil || !o.watch {
		return together(ctx, []error{err, unknown})
	}
	look.note(unknown)
	return look.follow(ctx)
}

func (s *selection) where(namespace string) string {
	text := "in namespace " + namespace
	if s.allNamespaces {
		text = "in any namespace"
	}
	if s.labels != "" {
		text += " with labels " + s.labels
	}
	return text
}

// podLook is one look, or several, at the pods that get shows.
type podLook struct {
	g *globals
	o *getOptions
	// named tells that the command line names what to show.
	named   bool
	desired []*podspec.Desired
	world   observer
}

// pods observes what there is now. With an error there are the pods that it does not keep
// from being shown; nil for none.
func (l *podLook) pods(ctx context.Context) ([]*v1.Pod, error) {
	desired := l.desired
	if engine, live := l.world.(*runtime.Engine); live && !l.named {
		foreign, err := l.foreign(ctx, engine)
		if err != nil {
			return nil, err
		}
		desired = append(slices.Clone(desired), foreign...)
	}
	var unasked error
	if l.o.probe {
		unasked = probeFirst(ctx, l.g.engine, desired)
	}
	pods, unknown := l.world.List(ctx, desired)
	if pods == nil {
		return nil, unknown
	}
	if err := l.o.printer.sort(pods); err != nil {
		return nil, err
	}
	return pods, together(ctx, []error{unasked, unknown})
}

// note tells once why something is not known of pods.
func (l *podLook) note(err error) {
	if err != nil {
		l.g.noteOnce("note: %s", l.g.errorText(err))
	}
}

// foreign lists the pods of others that the selection lets through. A pod of
// podctl's is never taken for one, whatever namespace was asked for.
func (l *podLook) foreign(ctx context.Context, engine *runtime.Engine) ([]*podspec.Desired, error) {
	own, err := l.g.applied(selection{})
	if err != nil {
		return nil, err
	}
	found, err := engine.Lister.Unmanaged(ctx, uidsOf(own))
	if err != nil {
		return nil, err
	}
	return l.o.filter(found, l.g.namespace)
}

// follow shows what changes, until it is interrupted: one line or document for each
// pod or container that is not as it was shown last.
func (l *podLook) follow(ctx context.Context) error {
	for sleep(ctx, watchTick) {
		err := l.refresh(ctx)
		if gone := (*cri.UnavailableError)(nil); errors.As(err, &gone) {
			// It may be restarted; a watch shows what is there when it is back.
			continue
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return watchEnded(ctx)
}

func (l *podLook) refresh(ctx context.Context) error {
	if !l.named {
		applied, err := l.g.allApplied(l.o.selection)
		if err != nil {
			return err
		}
		l.desired = applied
	}
	pods, err := l.pods(ctx)
	if pods == nil && err != nil {
		return err
	}
	l.note(err)
	return l.o.printer.printChanged(pods)
}

// pathOutput is an output flag that takes a JSONPath template too.
type pathOutput struct{ *choice }

// Set takes one of the words, or jsonpath=TEMPLATE.
func (p *pathOutput) Set(text string) error {
	if strings.HasPrefix(text, jsonPathPrefix) {
		*p.value = text
		return nil
	}
	if err := p.choice.Set(text); err != nil {
		return fmt.Errorf("%w, jsonpath=TEMPLATE", err)
	}
	return nil
}
