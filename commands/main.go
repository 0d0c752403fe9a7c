package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/daemon"
)

// Env is the environment of one podctl: its streams, clock and variables.
type Env = terminal.Env

// Join connects an agent to a cluster.
type Join = daemon.Join

// System returns the environment of the process.
func System() *Env { return terminal.System() }

// Main runs one command line and returns the exit code of the process.
func Main(ctx context.Context, env *Env, args []string) int { return NodeMain(ctx, env, args, nil) }

// NodeMain is Main of a program that can join a cluster. If join is nil, `podctl agent --kubeconfig FILE` replaces the
// process with the program podctl-node.
func NodeMain(ctx context.Context, env *Env, args []string, join Join) int {
	p := newProgram(env)
	p.join = join
	root := p.root() //nolint:contextcheck // cobra passes the context to the commands
	root.SetArgs(args)
	if completion.Requested(args) {
		completion.Of(p.sess.Flags).Flags(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, p.end())
	code := exit.CommandCode(ctx, cmd.Annotations, err)
	if err == nil || err.Error() == "" {
		return code
	}
	if code == exit.Interrupted {
		err = exit.Interruption(err)
	}
	p.sess.RefreshRedactor()
	text := terminal.PrintableLines(p.sess.ErrorText(err))
	fmt.Fprintf(env.Err, "podctl: %s\n", text) //nolint:errcheck // there is no other place to print it
	if usage := (*exit.UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(env.Err, "See '%s --help'.\n", cmd.CommandPath()) //nolint:errcheck // as above
	}
	return code
}
