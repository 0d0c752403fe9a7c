package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/agent/control"
	"github.com/podctl/podctl/commands/image"
	"github.com/podctl/podctl/commands/inspect"
	"github.com/podctl/podctl/commands/interact"
	"github.com/podctl/podctl/commands/lifecycle"
	"github.com/podctl/podctl/commands/node"
	"github.com/podctl/podctl/commands/program"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
)

// Env is the environment of one podctl: its streams, clock and variables.
type Env = terminal.Env

// System returns the environment of the process.
func System() *Env { return terminal.System() }

// Main runs one command line and returns the exit code of the process.
func Main(ctx context.Context, env *Env, args []string) int {
	p := program.New(env, nil)         //nolint:contextcheck // cobra passes the context to the commands
	return p.Run(ctx, rootOf(p), args) //nolint:contextcheck // as above
}

// New builds the command tree.
func New(env *Env) *cobra.Command { return rootOf(program.New(env, nil)) }

// Groups of commands in the help.
const (
	groupMain   = "main"
	groupLook   = "look"
	groupInside = "inside"
	groupUpkeep = "upkeep"
)

// rootOf builds the command tree.
func rootOf(p *program.Program) *cobra.Command {
	root := p.Root()
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Commands"},
		&cobra.Group{ID: groupLook, Title: "Inspection commands"},
		&cobra.Group{ID: groupInside, Title: "Commands for running pods"},
		&cobra.Group{ID: groupUpkeep, Title: "Management commands"},
	)
	p.Agent.AddCommand(control.Commands(p.Session)...)
	addCommands(root, p.Session, p.Agent)
	root.SetHelpCommandGroupID(groupUpkeep)
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
		program.NewVersion(sess))
}
