package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/agent"
	"github.com/podctl/podctl/commands/agent/control"
	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/image"
	"github.com/podctl/podctl/commands/inspect"
	"github.com/podctl/podctl/commands/interact"
	"github.com/podctl/podctl/commands/lifecycle"
	"github.com/podctl/podctl/commands/node"
	"github.com/podctl/podctl/commands/profile"
	"github.com/podctl/podctl/commands/session"
)

// program is one invocation of podctl.
type program struct {
	sess    *session.Session
	profile profile.Profile
	cancel  context.CancelFunc
	// agent is the command with its own section in configuration files.
	agent *cobra.Command
}

// newProgram returns a program. join connects its agent to a cluster, and leave takes the machine out of it. They are
// nil in a program that cannot.
func newProgram(env *Env, join Join, leave Leave) *program {
	sess := session.New(env)
	return &program{sess: sess, agent: agent.New(sess, agent.Program{Version: version, Join: join, Leave: leave})}
}

// New builds the command tree.
func New(env *Env) *cobra.Command { return newProgram(env, nil, nil).root() }

// Groups of commands in the help.
const (
	groupMain   = "main"
	groupLook   = "look"
	groupInside = "inside"
	groupUpkeep = "upkeep"
)

// root builds the command tree.
func (p *program) root() *cobra.Command {
	root := p.base()
	p.agent.AddCommand(control.Commands(p.sess)...)
	addCommands(root, p.sess, p.agent)
	root.SetHelpCommandGroupID(groupUpkeep)
	return root
}

// base returns the root without commands.
func (p *program) base() *cobra.Command {
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
	root.SetIn(p.sess.IO.In)
	root.SetOut(p.sess.IO.Out)
	root.SetErr(p.sess.IO.Err)
	root.SetHelpFunc(help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { help(cmd, nil); return nil })
	root.SetFlagErrorFunc(flags.Error)
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Commands"},
		&cobra.Group{ID: groupLook, Title: "Inspection commands"},
		&cobra.Group{ID: groupInside, Title: "Commands for running pods"},
		&cobra.Group{ID: groupUpkeep, Title: "Management commands"},
	)
	p.sess.Flags.Register(root.PersistentFlags())
	p.profile.Register(root.PersistentFlags())
	return root
}

func addCommands(root *cobra.Command, sess *session.Session, agent *cobra.Command) {
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	add(groupMain,
		lifecycle.NewPlan(sess),
		lifecycle.NewDiff(sess),
		lifecycle.NewApply(sess),
		lifecycle.NewRun(sess),
		lifecycle.NewRestart(sess),
		lifecycle.NewScale(sess),
		lifecycle.NewRollout(sess),
		inspect.NewProbe(sess),
		lifecycle.NewDelete(sess))
	add(groupLook,
		inspect.NewGet(sess),
		inspect.NewExplain(sess),
		inspect.NewDescribe(sess),
		inspect.NewEvents(sess),
		inspect.NewWhy(sess),
		inspect.NewTop(sess),
		inspect.NewLogs(sess),
		lifecycle.NewWait(sess),
		newValidate(sess),
		newRender(sess),
		newSnapshot(sess),
		newExport(sess, agent))
	add(groupInside,
		interact.NewExec(sess),
		interact.NewAttach(sess),
		interact.NewPortForward(sess),
		interact.NewCopy(sess),
		interact.NewDebug(sess))
	add(groupUpkeep,
		image.New(sess),
		newPrune(sess),
		newDoctor(sess, agent),
		agent,
		node.New(sess),
		newCompletion(),
		newVersion(sess))
}

// begin loads the configuration and starts the timeout of the command.
func (p *program) begin(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		// The arguments after the dash are a command of the user and may contain secrets.
		args = args[:dash]
	}
	f := p.sess.Flags
	f.Command = append(strings.Fields(cmd.CommandPath()), args...)
	f.NamespaceGiven = cmd.Flags().Changed("namespace")
	set := config.SettingsOf(cmd.Root().PersistentFlags(), cmd.Flags())
	if err := f.Load(set, config.Sections{"agent": p.agent.LocalFlags()}, &p.sess.IO.Env); err != nil {
		return err
	}
	p.sess.IO.Color = f.Color
	ctx, cancel := session.WithTimeout(cmd.Context(), f.Timeout)
	p.cancel = cancel
	ctx, err := p.profile.Start(ctx, cmd.CommandPath(), p.sess.IO.Getenv)
	cmd.SetContext(ctx)
	return err
}

// end releases the resources of begin, whether the command succeeded or not.
func (p *program) end() error {
	if p.cancel != nil {
		p.cancel()
	}
	p.sess.WaitForServices()
	_ = p.sess.Close() // The process ends, or continues without the connection.
	return p.profile.Stop()
}
