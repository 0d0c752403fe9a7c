package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/daemon"
)

// Env is the environment of one podctl: its streams, clock and variables.
type Env = terminal.Env

// Join connects an agent to a cluster.
type Join = daemon.Join

// Leave takes a machine out of its cluster.
type Leave = daemon.Leave

// System returns the environment of the process.
func System() *Env { return terminal.System() }

// Main runs one command line and returns the exit code of the process.
func Main(ctx context.Context, env *Env, args []string) int {
	p := newProgram(env, nil, nil)    //nolint:contextcheck // cobra passes the context to the commands
	return p.run(ctx, p.root(), args) //nolint:contextcheck // as above
}

// NodeMain is Main of podctl-node, which has only the commands agent and version, and can join a cluster. It replaces
// the process of `podctl agent --kubeconfig FILE`. The other commands are left out because their code takes memory.
func NodeMain(ctx context.Context, env *Env, args []string, join Join, leave Leave) int {
	p := newProgram(env, join, leave) //nolint:contextcheck // as in Main
	root := p.base()
	root.AddCommand(p.agent, newVersion(p.sess)) //nolint:contextcheck // as in Main
	return p.run(ctx, root, args)
}

// run runs one command line with the commands of root.
func (p *program) run(ctx context.Context, root *cobra.Command, args []string) int {
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
	fmt.Fprintf(p.sess.IO.Err, "podctl: %s\n", text) //nolint:errcheck // there is no other place to print it
	if usage := (*exit.UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(p.sess.IO.Err, "See '%s --help'.\n", cmd.CommandPath()) //nolint:errcheck // as above
	}
	return code
}
