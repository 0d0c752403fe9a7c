package interact

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/remote"
)

// NewAttach returns the command `podctl attach`.
func NewAttach(sess *session.Session) *cobra.Command {
	o := &attachOptions{}
	cmd := &cobra.Command{
		Annotations: exit.OwnFailure(exit.ExecFailed),
		Use:         "attach [flags] POD [-c CONTAINER]",
		Short:       "Attach to a running container",
		Long: "Attach to the main process of a container until it ends. " +
			"Without -i, only its output is shown. " +
			"When the input ends,\nthe process goes on, unless the container sets stdinOnce. " +
			"On a terminal (-it), press the --detach-keys to disconnect\nand leave the process running." +
			flags.ExitCodes(
				"0 the process or the connection ended, or the user detached",
				"126 podctl could not attach, or could not write the output",
				"127 no such pod or container",
				"130 interrupted",
			),
		Example:           "  podctl attach web\n  podctl attach -it shell",
		ValidArgsFunction: completion.Of(sess.Flags).Pod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("attach needs a pod")
			}
			return runAttach(cmd.Context(), sess, o, args[0])
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.keys, "detach-keys", defaultDetachKeys,
		"Keys to detach, separated by commas: letters and ctrl-LETTER (empty: none)")
	return cmd
}

type attachOptions struct {
	streamOptions
	keys string
}

func runAttach(ctx context.Context, sess *session.Session, o *attachOptions, name string) error {
	keys, err := parseKeys(o.keys)
	if err != nil {
		return err
	}
	d, engine, err := selection.Running(ctx, sess, name)
	if err != nil {
		return notFoundCode(err)
	}
	container, err := o.container.Choose(sess.IO, d)
	if err != nil {
		return &exit.CodeError{Code: exit.NotFound, Err: err}
	}
	a := &attachment{io: sess.IO, engine: engine, pod: d, container: container, detach: keys}
	_, err = a.connect(ctx, &o.streamOptions)
	if errors.Is(err, errDetached) {
		sess.IO.Note("detached: container %s keeps running", container)
		return nil
	}
	return processCode(err)
}

// attachment connects to the main process of a container.
type attachment struct {
	io        *terminal.IO
	engine    *runtime.Engine
	pod       *podspec.Desired
	container string
	detach    []byte
}

// connect connects the streams that the manifest allows. It reports whether the process has written anything.
func (a *attachment) connect(ctx context.Context, o *streamOptions) (wrote bool, err error) {
	ref, _ := podspec.FindContainer(a.pod.Pod, a.container)
	if o.stdin && !ref.Stdin {
		return false, exit.Usagef("container %s takes no input: its manifest does not set stdin: true", a.container)
	}
	if o.tty && !ref.TTY {
		a.io.Note("note: container %s has no terminal (tty: true), so -t has no effect", a.container)
	}
	// The container's tty setting decides the form of its output, not the user's.
	s := &streams{io: a.io, stdin: o.stdin, tty: ref.TTY, running: true, detach: a.detach}
	return s.connect(ctx, func(ctx context.Context, r *remote.Streams) error {
		return a.engine.Sessions.Attach(ctx, a.pod, a.container, r)
	})
}
