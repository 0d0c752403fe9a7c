package commands

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
)

type logsOptions struct {
	container     string
	follow        bool
	previous      bool
	timestamps    bool
	prefix        bool
	allContainers bool
	tail          int64
	since         time.Duration
}

func newLogs(g *globals) *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs [flags] MANIFEST|POD [CONTAINER]",
		Short: "Show the logs of a pod's containers",
		Long: "Show the logs of a container, or of all containers of a pod.\n" +
			"With -f, go on over restarts until the pod has finished." + exitCodes("0 done", "1 error"),
		Example: "  podctl logs web\n  podctl logs -f --tail 10 web app\n  podctl logs -p web app   # the run before this one",
		RunE:    func(cmd *cobra.Command, args []string) error { return runLogs(cmd, g, o, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.container, "container", "c", "", "Only this container")
	f.BoolVarP(&o.follow, "follow", "f", false, "Go on showing what comes")
	f.BoolVarP(&o.previous, "previous", "p", false, "Show the run before the current one")
	f.BoolVar(&o.timestamps, "timestamps", false, "Write the time before each line")
	f.BoolVar(&o.prefix, "prefix", false, "Write the container's name before each line")
	f.BoolVar(&o.allContainers, "all-containers", false, "All containers (the default)")
	f.Int64Var(&o.tail, "tail", -1, "Only so many lines from the end (-1: all)")
	f.DurationVar(&o.since, "since", 0, "Only lines younger than this, for example 5m")
	return cmd
}

func runLogs(cmd *cobra.Command, g *globals, o *logsOptions, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return usagef("logs needs a pod, and at most one container")
	}
	if len(args) == 2 {
		o.container = args[1]
	}
	if o.container != "" && o.allContainers {
		return usagef("--all-containers and a container's name exclude each other")
	}
	pods, err := g.desired(cmd.Context(), selection{quiet: true}, args[:1])
	if err != nil {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	opts := runtime.LogOptions{
		Container: o.container, Follow: o.follow, Previous: o.previous, Timestamps: o.timestamps, Prefix: o.prefix,
	}
	if o.tail >= 0 {
		opts.Tail = &o.tail
	}
	if o.since > 0 {
		opts.Since = g.env.Now().Add(-o.since)
	}
	for _, d := range pods {
		opts.Prefix = o.prefix || (o.container == "" && len(podspec.Containers(d.Pod)) > 1)
		if err := engine.Logs(cmd.Context(), d, opts, g.env.Out, g.env.Err); err != nil {
			return err
		}
	}
	return nil
}
