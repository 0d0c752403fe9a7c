package inspect

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/logfile"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

type logsOptions struct {
	selection.Selection
	container  selection.Container
	follow     bool
	previous   bool
	timestamps bool
	prefix     bool
	// stderr sends the stderr of containers to stderr instead of stdout.
	stderr        bool
	allContainers bool
	tail          int64
	limit         int64
	since         time.Duration
	sinceTime     string
}

// NewLogs returns the command `podctl logs`.
func NewLogs(sess *session.Session) *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs [flags] MANIFEST|POD [CONTAINER]",
		Short: "Print the logs of containers",
		Long: "Print the log of a container. " +
			"Use --all-containers for all containers of a pod, and -l or --all for several pods. " +
			"The\nlines that the container wrote to stdout and stderr are printed to stdout in the original order. " +
			"Rotated files are\nincluded. " +
			"With -f, podctl follows the log across restarts until the pod has finished." +
			flags.ExitCodes("0 success", "1 error", "5 manifest refused", "130 interrupted"),
		Example: "  podctl logs web\n" +
			"  podctl logs -f --tail 10 web app\n" +
			"  podctl logs -p web app   # the previous run\n" +
			"  podctl logs -l app=web --all-containers --since 5m",
		ValidArgsFunction: completion.Of(sess.Flags).PodThenContainer,
		RunE:              flags.Run(sess, o, runLogs),
	}
	f := cmd.Flags()
	o.container.Register(f, "Do not print which container was chosen")
	f.BoolVar(&o.allContainers, "all-containers", false, "Print the logs of all containers of the pod")
	f.BoolVar(&o.All, "all", false, "Print the logs of all pods that podctl applied in the namespace")
	o.RegisterSelectors(f, "All namespaces (with --all or a selector)")
	f.BoolVarP(&o.follow, "follow", "f", false, "Follow the log")
	f.BoolVarP(&o.previous, "previous", "p", false, "Print the log of the previous run")
	f.BoolVar(&o.timestamps, "timestamps", false, "Print a timestamp before each line")
	f.BoolVar(&o.prefix, "prefix", false, "Print the pod and container before each line")
	f.BoolVar(&o.stderr, "stderr", false, "Print the stderr of containers to stderr (default: everything to stdout)")
	f.Int64Var(&o.tail, "tail", -1, "Number of lines to print from the end of the log (-1: all)")
	f.Int64Var(&o.limit, "limit-bytes", 0, "Maximum number of bytes to print per container (0: no limit)")
	f.DurationVar(&o.since, "since", 0, "Print only lines newer than a duration such as 5m")
	f.StringVar(&o.sinceTime, "since-time", "", "Print only lines after a time (RFC 3339)")
	return cmd
}

// check returns an error for flags that contradict each other.
func (o *logsOptions) check(args []string) error {
	switch {
	case o.IsEmpty(args) || len(args) > 2:
		return exit.Usagef("logs needs a pod and at most one container, --all, or a selector")
	case o.container.Name != "" && (o.allContainers || len(args) == 2):
		return exit.Usagef("--container cannot be used with another container or --all-containers")
	case len(args) == 2 && o.allContainers:
		return exit.Usagef("--all-containers cannot be used with a container")
	case o.since != 0 && o.sinceTime != "":
		return exit.Usagef("--since and --since-time cannot be used together")
	case o.follow && o.previous:
		return exit.Usagef("--follow and --previous cannot be used together: the previous run has ended")
	}
	return nil
}

func runLogs(ctx context.Context, sess *session.Session, o *logsOptions, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	o.For = selection.Show
	if len(args) == 2 {
		o.container.Name = args[1]
	}
	pods, err := o.Pods(ctx, sess, args[:min(len(args), 1)]...)
	if err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		sess.IO.Note("No pods %s.", o.Where(sess.Flags.Namespace))
		return nil
	}
	opts, err := o.options(sess.IO.Now())
	if err != nil {
		return err
	}
	r := &logReader{io: sess.IO, engine: engine, o: o, opts: opts, out: &syncWriter{w: sess.IO.Out}}
	if err := r.show(ctx, pods); err != nil || !o.follow {
		return err
	}
	return session.WatchEnded(ctx)
}

func (o *logsOptions) options(now time.Time) (runtimesession.LogOptions, error) {
	opts := runtimesession.LogOptions{
		Options:  logfile.Options{Follow: o.follow, Timestamps: o.timestamps},
		Previous: o.previous,
	}
	if o.tail >= 0 {
		opts.Tail = &o.tail
	}
	if o.limit > 0 {
		opts.LimitBytes = &o.limit
	}
	if o.since > 0 {
		opts.Since = now.Add(-o.since)
	}
	if o.sinceTime != "" {
		at, err := time.Parse(time.RFC3339Nano, o.sinceTime)
		if err != nil {
			return opts, exit.Usagef("--since-time: %q is not an RFC 3339 time, for example 2026-01-31T12:00:00Z",
				o.sinceTime)
		}
		opts.Since = at
	}
	return opts, nil
}

// logReader prints the logs of several pods.
type logReader struct {
	io     *terminal.IO
	engine *runtime.Engine
	o      *logsOptions
	opts   runtimesession.LogOptions
	out    *syncWriter
}

// show prints the logs of one pod after the other. With -f, it follows all pods at the same time.
func (r *logReader) show(ctx context.Context, pods []*podspec.Desired) error {
	limit := 1
	if r.opts.Follow {
		limit = len(pods)
	}
	return errors.Join(selection.ForEach(pods, limit, func(d *podspec.Desired) error { return r.pod(ctx, d) })...)
}

func (r *logReader) pod(ctx context.Context, d *podspec.Desired) error {
	d, err := r.engine.Sessions.WithDebug(ctx, d)
	if err != nil {
		return err
	}
	opts := r.opts
	if !r.o.allContainers {
		if opts.Container, err = r.o.container.Choose(r.io, d); err != nil {
			return err
		}
	}
	several := r.o.prefix || r.o.All || r.o.Selects()
	if several || r.o.allContainers {
		pod := ""
		if several {
			pod = "pod/" + d.Pod.Name + "/"
		}
		opts.Prefix = view.LogPrefix(r.io.OutColors(), pod)
	}
	errs := io.Writer(r.out)
	if r.o.stderr {
		errs = r.io.Err
	}
	return r.engine.Sessions.Logs(ctx, d, opts, r.out, errs)
}

// syncWriter lets several writers share a stream. It passes on one write at a time.
type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *syncWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
