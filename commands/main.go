package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
)

// Env is what podctl has of the world around it.
type Env = terminal.Env

// System is the process's own environment.
func System() *Env { return terminal.System() }

// Main runs one command line and returns the process's exit code.
func Main(ctx context.Context, env *Env, args []string) int {
	p := newProgram(env)
	root := p.root() //nolint:contextcheck // cobra hands the context to the commands
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
	fmt.Fprintf(env.Err, "podctl: %s\n", terminal.PrintableLines(p.sess.ErrorText(err))) //nolint:errcheck // there is nowhere else to say it
	if usage := (*exit.UsageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(env.Err, "See '%s --help'.\n", cmd.CommandPath()) //nolint:errcheck // as above
	}
	return code
}
