package inspect

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

// sampleTime is the time between the two samples that CPU usage is computed from.
const sampleTime = 500 * time.Millisecond

type topOptions struct {
	selection.Selection
	view     usageView
	sortBy   string
	output   string
	once     bool
	interval time.Duration
}

// NewTop returns the command `podctl top`.
func NewTop(sess *session.Session) *cobra.Command {
	o := &topOptions{}
	cmd := &cobra.Command{
		Use:   "top [flags] [MANIFEST|POD...]",
		Short: "Show CPU and memory usage of pods",
		Long: "Show the CPU and memory usage of pods that podctl applied. " +
			"On a terminal, the table is updated until you press q.\n" +
			"Otherwise, it is printed once. " +
			"Memory is the working set. " +
			"Percentages refer to the limits in the manifest." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example:           "  podctl top\n  podctl top -A --containers --sort-by memory\n  podctl top --once web",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.once = o.once || !cmd.Flags().Changed("once") && !sess.IO.OutTTY
			return runTop(cmd.Context(), sess, o, args)
		},
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	o.RegisterSelectors(f, "All namespaces")
	f.BoolVar(&o.view.containers, "containers", false, "Print one line per container")
	f.BoolVar(&o.once, "once", false, "Print one table and exit (default if stdout is not a terminal)")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "Time between updates")
	f.Var(&flags.Choice{Value: &o.sortBy, Allowed: []string{"name", "cpu", "memory"}, Start: "name"}, "sort-by",
		"Sort by name, cpu or memory")
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o",
		"Output format: text, json or yaml; json and yaml are printed once")
	return cmd
}

func runTop(ctx context.Context, sess *session.Session, o *topOptions, args []string) error {
	if o.interval <= 0 {
		return exit.Usagef("--interval must be greater than zero")
	}
	o.view.namespaces = o.AllNamespaces
	pods, err := o.Pods(ctx, sess, args...)
	if err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	look := &topLook{sess: sess, o: o, meter: engine.Sessions.NewMeter(), pods: pods, named: len(args)+len(o.Files) > 0}
	if !o.shownOnce() && sess.IO.OutTTY {
		o.view.history = newUsageHistory()
		keys, restore := sess.IO.Keys()
		defer restore()
		look.keys = keys
	}
	return look.follow(ctx)
}

// topLook measures the usage of pods, once or repeatedly.
type topLook struct {
	sess  *session.Session
	o     *topOptions
	meter *runtimesession.Meter
	pods  []*podspec.Desired
	// named is set if the command line names pods.
	named bool
	// keys receives the keys that the user presses. It is nil without a terminal.
	keys <-chan byte
}

func (l *topLook) follow(ctx context.Context) error {
	if usage, err := l.meter.Measure(ctx, l.pods); usage == nil {
		return err
	}
	for pause := sampleTime; l.pause(ctx, pause); pause = l.o.interval {
		err := l.refresh(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil || l.o.shownOnce() {
			return err
		}
	}
	switch {
	case ctx.Err() == nil:
		return nil // The user pressed q.
	case l.o.shownOnce():
		return context.Cause(ctx)
	}
	return session.WatchEnded(ctx)
}

// pause waits for d. It reports false if the context ended or the user pressed q.
func (l *topLook) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case key := <-l.keys:
			if key == 'q' || key == 'Q' {
				return false
			}
		}
	}
}

func (l *topLook) refresh(ctx context.Context) error {
	if !l.named {
		found, err := l.o.Applied(ctx, l.sess)
		if err != nil {
			return err
		}
		l.pods = found.Pods
	}
	usage, unknown := l.meter.Measure(ctx, l.pods)
	if usage == nil {
		return unknown
	}
	err := l.o.show(l.sess, usage)
	if unknown == nil || l.o.shownOnce() {
		return exit.Join(ctx, err, unknown)
	}
	l.sess.IO.NoteOnce("note: %s", l.sess.ErrorText(unknown))
	return err
}

func (o *topOptions) shownOnce() bool { return o.once || terminal.IsDocument(o.output) }

func (o *topOptions) show(sess *session.Session, usage []runtimesession.PodUsage) error {
	o.sort(usage)
	if terminal.IsDocument(o.output) {
		return terminal.WriteDocument(sess.IO.Out, o.output, metricsDocument(usage, sess.IO.Now()))
	}
	if len(usage) == 0 {
		if sess.IO.OutTTY && !o.once {
			_, _ = io.WriteString(sess.IO.Out, terminal.ClearScreen) // A closed pipe ends the process.
		}
		sess.IO.Note("No pods %s.", o.Where(sess.Flags.Namespace))
		return nil
	}
	if o.view.history != nil {
		o.view.history.add(usage)
	}
	header, rows := o.view.header(), o.view.rows(usage)
	if !sess.IO.OutTTY || o.once {
		return table.Write(sess.IO.Out, header, rows)
	}
	// Replace the contents of the screen with the part of the table that fits.
	width, height := sess.IO.OutSize()
	header, rows = fitting(header, rows, width)
	var text strings.Builder
	if err := table.Write(&text, header, rows); err != nil {
		return err
	}
	_, err := io.WriteString(sess.IO.Out, terminal.ClearScreen+terminal.Fit(text.String(), width, height-1))
	return err
}

// sort sorts by usage, the highest first, or by name.
func (o *topOptions) sort(usage []runtimesession.PodUsage) {
	var of func(*runtimesession.ContainerUsage) *uint64
	switch o.sortBy {
	case "cpu":
		of = cpuOf
	case "memory":
		of = memoryOf
	default:
		slices.SortStableFunc(usage, func(a, b runtimesession.PodUsage) int {
			return cmp.Compare(a.Pod.String(), b.Pod.String())
		})
		return
	}
	for _, p := range usage {
		slices.SortStableFunc(p.Containers, func(a, b runtimesession.ContainerUsage) int {
			return cmp.Compare(ptr.Deref(of(&b), 0), ptr.Deref(of(&a), 0))
		})
	}
	slices.SortStableFunc(usage, func(a, b runtimesession.PodUsage) int {
		return cmp.Compare(ptr.Deref(sum(b, of), 0), ptr.Deref(sum(a, of), 0))
	})
}
