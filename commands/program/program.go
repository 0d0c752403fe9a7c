// Package program runs one command line. podctl and podctl-node have it in common: the global flags, the configuration,
// the help, the exit codes, and the commands agent and version. It does not import the other commands, because their
// code takes memory of a node.
package program

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/agent"
	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/profile"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/daemon"
)

// Program is one invocation of podctl or podctl-node.
type Program struct {
	Session *session.Session
	// Agent is the command with its own section in configuration files.
	Agent *cobra.Command

	profile profile.Profile
	cancel  context.CancelFunc
}

// New returns a program. node makes the machine a node of a cluster. It is nil in a program that cannot.
func New(env *terminal.Env, node *daemon.NodeProgram) *Program {
	sess := session.New(env)
	return &Program{Session: sess, Agent: agent.New(sess, agent.Program{Version: version, Node: node})}
}

// NodeMain runs one command line of podctl-node and returns the exit code of the process. podctl-node has only the
// commands agent and version, and can join a cluster. It replaces the process of `podctl agent --kubeconfig FILE`.
func NodeMain(ctx context.Context, env *terminal.Env, args []string, node *daemon.NodeProgram) int {
	p := New(env, node) //nolint:contextcheck // cobra passes the context to the commands
	root := p.Root()
	root.AddCommand(p.Agent, NewVersion(p.Session)) //nolint:contextcheck // as above
	return p.Run(ctx, root, args)
}

// Root returns the root of the command tree, without commands.
func (p *Program) Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "podctl [command]",
		Short: "The kubelet's pod sync as a command",
		Long: "podctl reads Kubernetes manifests, compares them with what a container runtime runs, " +
			"and shows what it would\nchange and why. apply makes exactly these changes in one sync pass; " +
			"agent repeats passes until it is stopped. " +
			"The exit\ncodes are the same for all commands except diff, run, exec, attach and debug, " +
			"whose help lists their own." +
			flags.ExitCodes(exit.Meanings()...),
		Example: "  podctl plan pod.yaml         # show what the next pass would change, and why\n" +
			"  podctl apply --wait pod.yaml # apply it and wait until the pod is ready\n" +
			"  podctl probe web             # run its probes once",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          flags.Subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRunE: p.begin,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(p.Session.IO.In)
	root.SetOut(p.Session.IO.Out)
	root.SetErr(p.Session.IO.Err)
	root.SetHelpFunc(help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { help(cmd, nil); return nil })
	root.SetFlagErrorFunc(flags.Error)
	p.Session.Flags.Register(root.PersistentFlags())
	p.profile.Register(root.PersistentFlags())
	return root
}

// Run runs one command line with the commands of root, and returns the exit code of the process.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	if completion.Requested(args) {
		completion.Of(p.Session.Flags).Flags(root)
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
	p.Session.RefreshRedactor()
	text := terminal.PrintableLines(p.Session.ErrorText(err))
	fmt.Fprintf(p.Session.IO.Err, "podctl: %s\n", text) //nolint:errcheck // there is no other place to print it
	if usage := (*exit.UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(p.Session.IO.Err, "See '%s --help'.\n", cmd.CommandPath()) //nolint:errcheck // as above
	}
	return code
}

// begin loads the configuration and starts the timeout of the command.
func (p *Program) begin(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		// The arguments after the dash are a command of the user and may contain secrets.
		args = args[:dash]
	}
	f := p.Session.Flags
	f.Command = append(strings.Fields(cmd.CommandPath()), args...)
	f.NamespaceGiven = cmd.Flags().Changed("namespace")
	set := config.SettingsOf(cmd.Root().PersistentFlags(), cmd.Flags())
	if err := f.Load(set, config.Sections{"agent": p.Agent.LocalFlags()}, &p.Session.IO.Env); err != nil {
		return err
	}
	p.Session.IO.Color = f.Color
	ctx, cancel := session.WithTimeout(cmd.Context(), f.Timeout)
	p.cancel = cancel
	ctx, err := p.profile.Start(ctx, cmd.CommandPath(), p.Session.IO.Getenv)
	cmd.SetContext(ctx)
	return err
}

// end releases the resources of begin, whether the command succeeded or not.
func (p *Program) end() error {
	if p.cancel != nil {
		p.cancel()
	}
	p.Session.WaitForServices()
	_ = p.Session.Close() // The process ends, or continues without the connection.
	return p.profile.Stop()
}
