package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// Main runs one command line and returns the process's exit code.
func Main(ctx context.Context, env *Env, args []string) int {
	g := &globals{env: env}
	root := newRoot(g) //nolint:contextcheck // cobra hands the context to the commands
	root.SetArgs(args)
	if completing(args) {
		g.completeFlags(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, g.end())
	code := codeOf(ctx, cmd, err)
	if err == nil || err.Error() == "" {
		return code
	}
	if code == exitInterrupted {
		err = interrupted(err)
	}
	g.redactor = nil                                                       // There may be more to know by now.
	fmt.Fprintf(env.Err, "podctl: %s\n", printableLines(g.errorText(err))) //nolint:errcheck // there is nowhere else to say it
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(env.Err, "See '%s --help'.\n", cmd.CommandPath()) //nolint:errcheck // as above
	}
	return code
}

// interrupted says in one word what the user did, and what is left of the work.
func interrupted(err error) error {
	if left := (*leftError)(nil); errors.As(err, &left) {
		return errors.New("interrupted" + left.Left())
	}
	return errors.New("interrupted")
}

// quietLibraries keeps the libraries' own logs from the terminal: what matters
// comes back as an error.
func quietLibraries() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// Errors go to stderr all the same, unless somebody else takes them: this one drops them.
	klog.SetLogger(klog.Logger{})
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// noArgs refuses arguments in the words of a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments", cmd.CommandPath())
	}
	return nil
}

func onePodArg(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes one pod or its manifest; this is %d", cmd.CommandPath(), len(args))
	}
	return nil
}
