package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/session"
)

// sampleTime is the time between the two looks that tell the use of processors.
const sampleTime = 500 * time.Millisecond

type topOptions struct {
	selection
	view     usageView
	sortBy   string
	output   string
	once     bool
	interval time.Duration
}

func newTop(g *globals) *cobra.Command {
	o := &topOptions{}
	cmd := &cobra.Command{
		Use:   "top [flags] [MANIFEST|POD...]",
		Short: "Show what pods use of processors and memory",
		Long: "Show what the pods that podctl applied use of processors and memory, again and again on a terminal and once\n" +
			"otherwise. Memory is the working set: what cannot be taken away from the container." +
			exitCodes("0 done", "1 error", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl top\n  podctl top -A --containers --sort-by memory\n  podctl top --once web",
		ValidArgsFunction: g.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.once = o.once || !cmd.Flags().Changed("once") && !g.env.OutTTY
			return runTop(cmd.Context(), g, o, args)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces")
	f.BoolVar(&o.view.containers, "containers", false, "One line for each container")
	f.BoolVar(&o.once, "once", false, "Show one table and end (default: when stdout is not a terminal)")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "Time from one table to the next")
	f.Var(&choice{value: &o.sortBy, allowed: []string{"name", "cpu", "memory"}, start: "name"}, "sort-by", "Sort by name, cpu or memory")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml; json and yaml are shown once")
	return cmd
}

func runTop(ctx context.Context, g *globals, o *topOptions, args []string) error {
	if o.interval <= 0 {
		return usagef("--interval must be longer than nothing")
	}
	o.quiet = true
	o.view.namespaces = o.allNamespaces
	pods, err := g.desired(ctx, o.selection, args)
	if err != nil {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	look := &topLook{g: g, o: o, meter: engine.Sessions.NewMeter(), pods: pods, named: len(args)+len(o.files) > 0}
	return look.follow(ctx)
}

// topLook is one look, or several, at what pods use.
type topLook struct {
	g     *globals
	o     *topOptions
	meter *session.Meter
	pods  []*podspec.Desired
	// named tells that the command line names what to show.
	named bool
}

func (l *topLook) follow(ctx context.Context) error {
	if usage, err := l.meter.Measure(ctx, l.pods); usage == nil {
		return err
	}
	for pause := sampleTime; sleep(ctx, pause); pause = l.o.interval {
		err := l.refresh(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil || l.o.shownOnce() {
			return err
		}
	}
	if l.o.shownOnce() {
		return context.Cause(ctx)
	}
	return watchEnded(ctx)
}

func (l *topLook) refresh(ctx context.Context) error {
	if !l.named {
		applied, err := l.g.allApplied(l.o.selection)
		if err != nil {
			return err
		}
		l.pods = applied
	}
	usage, unknown := l.meter.Measure(ctx, l.pods)
	if usage == nil {
		return unknown
	}
	err := l.o.show(l.g, usage)
	if unknown == nil || l.o.shownOnce() {
		return together(ctx, []error{err, unknown})
	}
	l.g.noteOnce("note: %s", l.g.errorText(unknown))
	return err
}

func (o *topOptions) shownOnce() bool { return o.once || isDocument(o.output) }

func (o *topOptions) show(g *globals, usage []session.PodUsage) error {
	o.sort(usage)
	if isDocument(o.output) {
		return writeDocument(g.env.Out, o.output, metricsDocument(usage, g.env.Now()))
	}
	var screen strings.Builder
	if g.env.OutTTY && !o.once {
		screen.WriteString(clearScreen)
	}
	if len(usage) == 0 {
		g.note("No pods %s.", o.where(g.namespace))
	} else if err := table(&screen, o.view.header(), o.view.rows(usage)); err != nil {
		return err
	}
	_, err := fmt.Fprint(g.env.Out, screen.String())
	return err
}

// sort puts what uses most first, or keeps the order of names.
func (o *topOptions) sort(usage []session.PodUsage) {
	var of func(*session.ContainerUsage) *uint64
	switch o.sortBy {
	case "cpu":
		of = cpuOf
	case "memory":
		of = memoryOf
	default:
		slices.SortStableFunc(usage, func(a, b session.PodUsage) int { return cmp.Compare(a.Pod.String(), b.Pod.String()) })
		return
	}
	for _, p := range usage {
		slices.SortStableFunc(p.Containers, func(a, b session.ContainerUsage) int { return cmp.Compare(valueOf(of(&b)), valueOf(of(&a))) })
	}
	slices.SortStableFunc(usage, func(a, b session.PodUsage) int { return cmp.Compare(valueOf(sum(b, of)), valueOf(sum(a, of))) })
}
