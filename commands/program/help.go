package program

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// help prints the help of a command in the style of nerdctl.
func help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	if cmd.Long != "" {
		b.WriteString(cmd.Long + "\n\n")
	} else if cmd.Short != "" {
		b.WriteString(cmd.Short + "\n\n")
	}
	fmt.Fprintf(&b, "Usage: %s\n", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases: %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, group := range cmd.Groups() {
		writeGroup(&b, cmd, group.ID, group.Title)
	}
	if len(cmd.Groups()) == 0 {
		writeGroup(&b, cmd, "", "Commands")
	}
	writeFlags(&b, "Flags", cmd.LocalNonPersistentFlags())
	persistent := cmd.InheritedFlags()
	if !cmd.HasParent() {
		persistent = cmd.PersistentFlags()
	}
	writeFlags(&b, "Global flags", persistent)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun '%s COMMAND --help' for more information on a command.\n", cmd.CommandPath())
	}
	io.WriteString(cmd.OutOrStdout(), b.String()) //nolint:errcheck // there is no other place to print it
}

func writeGroup(b *strings.Builder, cmd *cobra.Command, id, title string) {
	var lines []string
	for _, sub := range cmd.Commands() {
		if sub.GroupID == id && (sub.IsAvailableCommand() || sub.Name() == "help") {
			lines = append(lines, fmt.Sprintf("  %-12s %s", sub.Name(), sub.Short))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s:\n%s\n", title, strings.Join(lines, "\n"))
	}
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\n%s:\n%s", title, flags.FlagUsages())
	}
}
