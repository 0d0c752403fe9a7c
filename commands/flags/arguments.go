package flags

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
)

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s takes no arguments", cmd.CommandPath())
	}
	return nil
}

// OnePod wants one argument: a pod or its manifest.
func OnePod(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usagef("%s takes one pod or its manifest, not %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// Subcommand is for a command that only has others below it.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return exit.Usagef("%s", text)
}

// ExitCodes is the part of a command's help that lists its codes.
func ExitCodes(lines ...string) string {
	return "\n\nExit codes:\n  " + strings.Join(lines, "\n  ")
}

// Files is -f of a command that takes manifests.
func Files(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringSliceVarP(files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
}

// ConfigMaps is --configmap of a command that takes manifests.
func ConfigMaps(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringSliceVar(files, "configmap", nil, "File with ConfigMaps and Secrets that count as if the manifests had them, for this call (repeatable)")
}
