package interact

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/remote"
)

// NewExec is `podctl exec`.
func NewExec(sess *session.Session) *cobra.Command {
	o := &streamOptions{}
	cmd := &cobra.Command{
		Annotations: exit.OwnFailure(exit.ExecFailed),
		Use:         "exec [flags] POD [-c CONTAINER] -- COMMAND [ARG...]",
		Short:       "Run a command in a container",
		Long: "Run a command in a running container and exit with its exit code." +
			flags.ExitCodes("0-125 the exit code of the command", "126 the command could not be run, or its output could not be written", "127 no such pod, container or command", "130 interrupted"),
		Example:           "  podctl exec web -- ls -l /\n  podctl exec -it web -c app -- sh\n  tar c . | podctl exec -i web -- tar x -C /data",
		ValidArgsFunction: completion.Of(sess.Flags).Pod,
		RunE:              func(cmd *cobra.Command, args []string) error { return runExec(cmd, sess, o, args) },
	}
	o.register(cmd)
	return cmd
}

func runExec(cmd *cobra.Command, sess *session.Session, o *streamOptions, args []string) error {
	if len(args) < 2 || cmd.ArgsLenAtDash() > 1 {
		return &exit.CodeError{Code: exit.ExecFailed, Err: exit.Usagef("exec needs a pod and a command: exec POD -- COMMAND")}
	}
	ctx := cmd.Context()
	d, engine, err := selection.Running(ctx, sess, args[0])
	if err != nil {
		return notFoundCode(err)
	}
	container, err := o.container.Choose(sess.IO, d)
	if err != nil && cmd.ArgsLenAtDash() < 0 {
		// A -c of the command was taken for the container's.
		err = fmt.Errorf("%w; put -- before the command: exec %s -- COMMAND", err, args[0])
	}
	if err != nil {
		return &exit.CodeError{Code: exit.NotFound, Err: err}
	}
	s := &streams{io: sess.IO, stdin: o.stdin, tty: o.tty}
	_, err = s.connect(ctx, func(ctx context.Context, r *remote.Streams) error {
		return engine.Sessions.Exec(ctx, d, container, args[1:], r)
	})
	return processCode(err)
}
