package commands

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/session"
)

type logsOptions struct {
	selection
	streamOptions
	follow        bool
	previous      bool
	timestamps    bool
	prefix        bool
	allContainers bool
	tail          int64
	limit         int64
	since         time.Duration
	sinceTime     string
}

func newLogs(g *globals) *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs [flags] MANIFEST|POD [CONTAINER]",
		Short: "Show the logs of a pod's containers",
		Long: "Show the log of a container, or with --all-containers of all containers of a pod, or with -l of several pods.\n" +
			"Files that were rotated away are read too. With -f, go on over restarts until the pod has finished." +
			exitCodes("0 done", "1 error", "5 refused manifest", "130 interrupted"),
		Example: "  podctl logs web\n  podctl logs -f --tail 10 web app\n  podctl logs -p web app   # the run before this one\n" +
			"  podctl logs -l app=web --all-containers --since 5m",
		ValidArgsFunction: g.completePodThenContainer,
		RunE:              func(cmd *cobra.Command, args []string) error { return runLogs(cmd.Context(), g, o, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.container, "container", "c", "", "The container (default: the pod's default one, else the first)")
	f.BoolVar(&o.allContainers, "all-containers", false, "All containers of the pod")
	f.StringVarP(&o.labels, "selector", "l", "", "All pods whose labels match, for example app=web")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "With -l: pods of all namespaces")
	f.BoolVarP(&o.follow, "follow", "f", false, "Go on showing what comes")
	f.BoolVarP(&o.previous, "previous", "p", false, "Show the run before the current one")
	f.BoolVar(&o.timestamps, "timestamps", false, "Write the time before each line")
	f.BoolVar(&o.prefix, "prefix", false, "Write pod and container before each line")
	f.Int64Var(&o.tail, "tail", -1, "Only so many lines from the end (-1: all)")
	f.Int64Var(&o.limit, "limit-bytes", 0, "At most so many bytes of each container (0: all)")
	f.DurationVar(&o.since, "since", 0, "Only lines younger than this, for example 5m")
	f.StringVar(&o.sinceTime, "since-time", "", "Only lines after this time, as RFC 3339")
	f.BoolVarP(&o.streamOptions.quiet, "quiet", "q", false, "Do not say which container was chosen")
	return cmd
}

// check refuses flags that contradict each other.
func (o *logsOptions) check(args []string) error {
	switch {
	case o.labels == "" && (len(args) == 0 || len(args) > 2):
		return usagef("logs needs a pod and at most one container, or a --selector")
	case o.labels != "" && len(args) > 0:
		return usagef("--selector picks among all pods, so it goes with no names")
	case o.container != "" && (o.allContainers || len(args) == 2):
		return usagef("one container is named and another or all are asked for")
	case len(args) == 2 && o.allContainers:
		return usagef("--all-containers and a container's name exclude each other")
	case o.since != 0 && o.sinceTime != "":
		return usagef("--since and --since-time exclude each other")
	case o.follow && o.previous:
		return usagef("a run that has ended cannot be followed: --follow and --previous exclude each other")
	}
	return nil
}

func runLogs(ctx context.Context, g *globals, o *logsOptions, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	o.selection.quiet = true
	if len(args) == 2 {
		o.container = args[1]
	}
	pods, err := g.desired(ctx, o.selection, args[:min(len(args), 1)])
	if err != nil {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	opts, err := o.options(g)
	if err != nil {
		return err
	}
	if err := g.showLogs(ctx, engine, o, pods, opts); err != nil || !o.follow {
		return err
	}
	return watchEnded(ctx)
}

func (o *logsOptions) options(g *globals) (session.LogOptions, error) {
	opts := session.LogOptions{Options: logfile.Options{Follow: o.follow, Timestamps: o.timestamps}, Previous: o.previous}
	if o.tail >= 0 {
		opts.Tail = &o.tail
	}
	if o.limit > 0 {
		opts.LimitBytes = &o.limit
	}
	if o.since > 0 {
		opts.Since = g.env.Now().Add(-o.since)
	}
	if o.sinceTime != "" {
		at, err := time.Parse(time.RFC3339Nano, o.sinceTime)
		if err != nil {
			return opts, usagef("--since-time: %q is no time as RFC 3339 writes it, 2026-01-31T12:00:00Z", o.sinceTime)
		}
		opts.Since = at
	}
	return opts, nil
}

// showLogs shows the pods one after the other, or side by side when they are
// followed.
func (g *globals) showLogs(ctx context.Context, engine *runtime.Engine, o *logsOptions, pods []*podspec.Desired, opts session.LogOptions) error {
	errs := make([]error, len(pods))
	out := &wholeWrites{w: g.env.Out}
	var group sync.WaitGroup
	for i, d := range pods {
		show := func() { errs[i] = g.showPodLogs(ctx, engine, o, d, opts, out) }
		if opts.Follow {
			group.Go(show)
		} else {
			show()
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

//nolint:revive // all of it is needed, and it is called once
func (g *globals) showPodLogs(ctx context.Context, engine *runtime.Engine, o *logsOptions, d *podspec.Desired, opts session.LogOptions, out *wholeWrites) error {
	d, err := engine.Sessions.WithDebug(ctx, d)
	if err != nil {
		return err
	}
	several := o.labels != "" || o.allContainers
	if !o.allContainers {
		if opts.Container, err = g.chosenContainer(d, &o.streamOptions); err != nil {
			return err
		}
	}
	if o.prefix || several {
		pod := ""
		if o.prefix || o.labels != "" {
			pod = "pod/" + d.Pod.Name + "/"
		}
		opts.Prefix = g.logPrefix(pod)
	}
	return engine.Sessions.Logs(ctx, d, opts, out, g.env.Err)
}

// logPrefix names a container before each of its lines, after what names its pod, each
// in a colour of its own.
func (g *globals) logPrefix(pod string) func(string) string {
	paint := g.paint(g.env.OutTTY)
	colors := []color.Attribute{color.FgCyan, color.FgGreen, color.FgMagenta, color.FgYellow, color.FgBlue, color.FgHiCyan, color.FgHiGreen, color.FgHiMagenta}
	return func(container string) string {
		name := pod + container
		sum := fnv.New32a()
		sum.Write([]byte(name))
		return paint.with(fmt.Sprintf("[%s]", name), colors[int(sum.Sum32())%len(colors)]) + " "
	}
}

// wholeWrites lets several writers share a stream, a write at a time.
type wholeWrites struct {
	mu sync.Mutex
	w  io.Writer
}

// Write passes on one write as a whole.
func (s *wholeWrites) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
