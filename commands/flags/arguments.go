package flags

import (
	"context"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/exit"
)

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s takes no arguments", cmd.CommandPath())
	}
	return nil
}

// Needs requires an argument. The parameter describes it in the error.
func Needs(what string) cobra.PositionalArgs { return NeedsUpTo(math.MaxInt, what) }

// NeedsUpTo requires an argument, and refuses more than most of them. The parameter what describes them in the error.
func NeedsUpTo(most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || len(args) > most {
			return exit.Usagef("%s needs %s", strings.TrimPrefix(cmd.CommandPath(), "podctl "), what)
		}
		return nil
	}
}

// Subcommand refuses arguments of a command that only has subcommands.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Unknown(cmd, args[0])
}

// ExitCodes returns the section with the exit codes for the help of a command.
func ExitCodes(lines ...string) string {
	return "\n\nExit codes:\n  " + strings.Join(lines, "\n  ")
}

// Files defines -f and -R for a command that takes manifests.
func Files(cmd *cobra.Command, files *[]string, recursive *bool) {
	f := cmd.Flags()
	f.StringSliceVarP(files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVarP(recursive, "recursive", "R", false, "Read directories recursively")
}

// SkipUnknown defines --skip-unknown for a command that takes manifests.
func SkipUnknown(set *pflag.FlagSet, skip *bool) {
	set.BoolVar(skip, "skip-unknown", false, "Skip objects of unknown kinds, such as custom resources, and list them")
}

// ConfigMaps defines --configmap for a command that takes manifests.
func ConfigMaps(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringSliceVar(files, "configmap", nil,
		"File with ConfigMaps and Secrets to add to the manifests of this call (repeatable)")
}

// Run returns the function of a command that runs with its session, its options and its arguments.
func Run[S, O any](
	sess S, o O, run func(context.Context, S, O, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), sess, o, args) }
}
