package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/remote"
)

func newAttach(g *globals) *cobra.Command {
	o := &streamOptions{}
	cmd := &cobra.Command{
		Annotations: ownFailure(exitExecFailed),
		Use:         "attach [flags] POD [-c CONTAINER]",
		Short:       "Connect to the process of a container",
		Long: "Connect to the process that a container was started with, until it ends. Without -i its output is only watched.\n" +
			"An input that ends does not end the process unless its container has stdinOnce." +
			exitCodes("0 the process ended, or the connection did", "126 podctl could not connect, or not write what the process printed", "127 there is no such pod or container", "130 interrupted"),
		Example:           "  podctl attach web\n  podctl attach -it shell",
		ValidArgsFunction: g.completePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &codeError{code: exitExecFailed, err: usagef("attach needs a pod")}
			}
			return runAttach(cmd.Context(), g, o, args[0])
		},
	}
	o.add(cmd)
	return cmd
}

func runAttach(ctx context.Context, g *globals, o *streamOptions, name string) error {
	d, err := g.runningPod(ctx, name)
	if err != nil {
		return noEntry(err)
	}
	container, err := g.chosenContainer(d, o)
	if err != nil {
		return &codeError{code: exitExecNoEntry, err: err}
	}
	return execCode(g.attach(ctx, o, d, container))
}

// attach connects to a container's own process, as far as its manifest lets it.
func (g *globals) attach(ctx context.Context, o *streamOptions, d *podspec.Desired, container string) error {
	ref, _ := podspec.FindContainer(d.Pod, container)
	switch {
	case o.stdin && !ref.Stdin:
		return &codeError{code: exitExecFailed, err: usagef("container %s was not made to be typed to: its manifest does not say stdin: true", container)}
	case ref.TTY != o.tty && ref.TTY:
		// The container's own terminal decides how its output comes.
		o.tty = true
	case o.tty && !ref.TTY:
		g.note("note: container %s has no terminal (tty: true), so -t has no effect", container)
		o.tty = false
	}
	o.container, o.own = container, true
	return g.streamed(ctx, o, d, func(ctx context.Context, e *runtime.Engine, container string, s *remote.Streams) error {
		return e.Sessions.Attach(ctx, d, container, s)
	})
}
