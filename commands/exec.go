package commands

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/remote"
	"github.com/podctl/podctl/runtime/session"
	"github.com/podctl/podctl/runtime/state"
)

// Where the exit code is a process's, podctl's own failures are these (as those of
// a shell and of docker).
const (
	exitExecFailed  = 126
	exitExecNoEntry = 127
)

type streamOptions struct {
	container string
	stdin     bool
	tty       bool
	quiet     bool
	// own tells that the process has a terminal of its own already, or none: its streams
	// end only for who takes them as they are.
	own bool
	// heard tells whether the process has said anything.
	heard atomic.Bool
}

// listening passes on what is written, and tells that something was.
type listening struct {
	io.Writer
	heard *atomic.Bool
}

func (l listening) Write(p []byte) (int, error) {
	l.heard.Store(true)
	return l.Writer.Write(p)
}

func (g *globals) noteNoTerminal() {
	g.note("note: the input is no terminal, so the process gets none")
}

func newExec(g *globals) *cobra.Command {
	o := &streamOptions{}
	cmd := &cobra.Command{
		Annotations: ownFailure(exitExecFailed),
		Use:         "exec [flags] POD [-c CONTAINER] -- COMMAND [ARG...]",
		Short:       "Run a command in a container",
		Long: "Run a command in a running container, and exit as it does." +
			exitCodes("0-125 the command's own code", "126 podctl could not run it, or not write what it printed", "127 there is no such pod, container or command", "130 interrupted"),
		Example:           "  podctl exec web -- ls -l /\n  podctl exec -it web -c app -- sh\n  tar c . | podctl exec -i web -- tar x -C /data",
		ValidArgsFunction: g.completePod,
		RunE:              func(cmd *cobra.Command, args []string) error { return runExec(cmd, g, o, args) },
	}
	o.add(cmd)
	return cmd
}

func (o *streamOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.container, "container", "c", "", "The container (default: the pod's default one, else the first)")
	f.BoolVarP(&o.stdin, "stdin", "i", false, "Pass on the standard input")
	f.BoolVarP(&o.tty, "tty", "t", false, "Give the process a terminal")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "Say nothing beside what the process says")
}

func runExec(cmd *cobra.Command, g *globals, o *streamOptions, args []string) error {
	if len(args) < 2 || cmd.ArgsLenAtDash() > 1 {
		return &codeError{code: exitExecFailed, err: usagef("exec needs a pod and a command: exec POD -- COMMAND")}
	}
	d, err := g.runningPod(cmd.Context(), args[0])
	if err != nil {
		return noEntry(err)
	}
	err = g.streamed(cmd.Context(), o, d, func(ctx context.Context, e *runtime.Engine, container string, s *remote.Streams) error {
		return e.Sessions.Exec(ctx, d, container, args[1:], s)
	})
	return execCode(err)
}

// noEntry tells a pod that is not there from one that cannot be looked for.
func noEntry(err error) error {
	if absent := (*state.NotFoundError)(nil); errors.As(err, &absent) {
		return &codeError{code: exitExecNoEntry, err: err}
	}
	return err
}

// execCode passes a process's exit code on, and keeps podctl's own failures apart
// from it.
func execCode(err error) error {
	var exit *remote.ExitError
	var coded *codeError
	var failed *session.ExecError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return withCode(exit.Code)
	case errors.As(err, &coded):
		return err
	case errors.As(err, &failed) && failed.NoCommand():
		return &codeError{code: exitExecNoEntry, err: err}
	}
	return &codeError{code: exitExecFailed, err: err}
}

// onePod finds the one pod that a command works on.
func (g *globals) onePod(ctx context.Context, arg string) (*podspec.Desired, error) {
	pods, err := g.desired(ctx, selection{quiet: true}, []string{arg})
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 {
		return nil, usagef("%s holds %d pods; name one", arg, len(pods))
	}
	return pods[0], nil
}

// runningPod is one pod with the debug containers that were added to it.
func (g *globals) runningPod(ctx context.Context, arg string) (*podspec.Desired, error) {
	d, err := g.onePod(ctx, arg)
	if err != nil {
		return nil, err
	}
	engine, err := g.connect()
	if err != nil {
		return nil, err
	}
	return engine.Sessions.WithDebug(ctx, d)
}

// streamed connects the user's streams with a container, in raw mode when there is
// a terminal at both ends.
func (g *globals) streamed(ctx context.Context, o *streamOptions, d *podspec.Desired,
	connect func(context.Context, *runtime.Engine, string, *remote.Streams) error,
) error {
	container, err := g.chosenContainer(d, o)
	if err != nil {
		return &codeError{code: exitExecNoEntry, err: err}
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	s := &remote.Streams{Out: listening{g.env.Out, &o.heard}, Err: listening{g.env.Err, &o.heard}, Terminal: o.tty}
	if o.stdin {
		s.In = g.env.In
	}
	if !o.tty || !o.stdin {
		// Nobody reads the keys, so that they have to keep their meaning.
		return connect(ctx, engine, container, s)
	}
	t := g.env.terminal()
	if t == nil {
		if !o.own {
			g.noteNoTerminal()
			s.Terminal = false
		}
		return connect(ctx, engine, container, s)
	}
	return t.raw(ctx, func(ctx context.Context, sizes *sizeQueue) error {
		s.Resize = sizes
		return connect(ctx, engine, container, s)
	})
}

// defaultContainer is the annotation that names a pod's default container
// (kubectl: util/podcmd.DefaultContainerAnnotationName).
const defaultContainer = "kubectl.kubernetes.io/default-container"

// chosenContainer is the one the user names, else the pod's default one, else the
// first.
func (g *globals) chosenContainer(d *podspec.Desired, o *streamOptions) (string, error) {
	name := o.container
	if name == "" {
		name = d.Pod.Annotations[defaultContainer]
	}
	if name == "" {
		name = d.Pod.Spec.Containers[0].Name
		if len(d.Pod.Spec.Containers) > 1 && !o.quiet {
			g.note("Defaulted container %q out of: %s", name, namesOf(d))
		}
	}
	if _, ok := podspec.FindContainer(d.Pod, name); !ok {
		return "", usagef("pod %s/%s has no container %q; it has %s", d.Pod.Namespace, d.Pod.Name, name, namesOf(d))
	}
	return name, nil
}
