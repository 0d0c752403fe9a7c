package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

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
	fmt.Fprintf(env.Err, "podctl: %s\n", printable(err.Error())) //nolint:errcheck // there is nowhere else to say it
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

// printable makes a text that may come from an image, a log or a manifest safe
// for a terminal: control characters are shown, not obeyed, and so is what turns the
// direction of the writing round.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x20 || (r >= 0x7f && r < 0xa0):
			fmt.Fprintf(&b, "\\x%02x", r)
		case unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
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
