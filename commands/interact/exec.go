package interact

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/remote"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

// NewExec returns the command `podctl exec`.
func NewExec(sess *session.Session) *cobra.Command {
	o := &execOptions{}
	cmd := &cobra.Command{
		Annotations: exit.OwnFailure(exit.ExecFailed),
		Use:         "exec [flags] POD [-c CONTAINER] -- COMMAND [ARG...]",
		Short:       "Run a command in a container",
		Long: "Run a command in a running container and exit with its exit code.\n" +
			"\n" +
			"--user, --workdir and --env need containerd. " +
			"The command keeps the capabilities, profiles and limits of the container.\n" +
			"With one of these flags, an interrupt of podctl also ends the command." +
			flags.ExitCodes(
				"0-125 the exit code of the command",
				"126 the command could not be run, or its output could not be written",
				"127 no such pod, container or command",
				"130 interrupted",
				"141 the output was closed (podctl exec … | head)",
			),
		Example: "  podctl exec web -- ls -l /\n" +
			"  podctl exec -it web -c app -- sh\n" +
			"  podctl exec -u www-data -w /tmp -e DEBUG=1 web -- env\n" +
			"  tar c . | podctl exec -i web -- tar x -C /data",
		ValidArgsFunction: completion.Of(sess.Flags).Pod,
		RunE:              func(cmd *cobra.Command, args []string) error { return runExec(cmd, sess, o, args) },
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.command.User, "user", "u", "", "User to run as: name or number, optionally with :GROUP")
	f.StringVarP(&o.command.Dir, "workdir", "w", "", "Working directory")
	f.StringArrayVarP(&o.command.Env, "env", "e", nil,
		"Environment variable: NAME=VALUE, or NAME for its value in the environment of podctl (repeatable)")
	return cmd
}

type execOptions struct {
	streamOptions
	command runtimesession.Command
}

// complete checks the flags, and gives variables without a value the value from podctl's environment.
func (o *execOptions) complete(getenv func(string) string) error {
	if o.command.Dir != "" && !path.IsAbs(o.command.Dir) {
		return exit.Usagef("--workdir must be an absolute path, not %q", o.command.Dir)
	}
	for i, variable := range o.command.Env {
		name, _, hasValue := strings.Cut(variable, "=")
		if name == "" {
			return exit.Usagef("--env must be NAME=VALUE or NAME")
		}
		if !hasValue {
			o.command.Env[i] = name + "=" + getenv(name)
		}
	}
	return nil
}

func runExec(cmd *cobra.Command, sess *session.Session, o *execOptions, args []string) error {
	if len(args) < 2 || cmd.ArgsLenAtDash() > 1 {
		return exit.Usagef("exec needs a pod and a command: exec POD -- COMMAND")
	}
	if err := o.complete(sess.IO.Getenv); err != nil {
		return err
	}
	ctx := cmd.Context()
	d, engine, err := selection.Running(ctx, sess, args[0])
	if err != nil {
		return notFoundCode(err)
	}
	container, err := o.container.Choose(sess.IO, d)
	if err != nil && cmd.ArgsLenAtDash() < 0 {
		// The flag -c of the command may have been taken for podctl's own.
		err = fmt.Errorf("%w; put -- before the command: exec %s -- COMMAND", err, args[0])
	}
	if err != nil {
		return &exit.CodeError{Code: exit.NotFound, Err: err}
	}
	o.command.Args = args[1:]
	if o.command.Differs() {
		// podctl started the process itself, so podctl must live long enough to end it.
		defer terminal.KeepSIGPIPE()()
	}
	s := &streams{io: sess.IO, stdin: o.stdin, tty: o.tty}
	_, err = s.connect(ctx, func(ctx context.Context, r *remote.Streams) error {
		return engine.Sessions.Exec(ctx, d, container, &o.command, r)
	})
	unwritten := (*remote.OutputError)(nil)
	if errors.As(err, &unwritten) && errors.Is(err, unix.EPIPE) && o.command.Differs() {
		return exit.With(exit.BrokenPipe)
	}
	return processCode(err)
}
