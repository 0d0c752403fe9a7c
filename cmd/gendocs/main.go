// Command gendocs generates files from the code. These are the documents in the repository (one page per command, and
// the table of the Pod's fields), and the man pages and completions of packages. CI fails if the generated documents
// differ from those in the repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/podspec/fields"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

// run writes one kind of output to a directory.
func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: gendocs docs|man|completions DIRECTORY")
	}
	root := commands.New(commands.System())
	switch what, dir := args[0], args[1]; what {
	case "docs":
		return writeDocs(dir, root)
	case "man":
		return writeMan(dir, root)
	case "completions":
		return writeCompletions(dir, root)
	default:
		return fmt.Errorf("nothing is known of %q", what)
	}
}

// empty creates a directory without files of an earlier run.
func empty(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

func writeDocs(docs string, root *cobra.Command) error {
	dir := filepath.Join(docs, "cli")
	if err := empty(dir); err != nil {
		return err
	}
	if err := writePages(dir, root); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, "fields.md"), []byte(fieldsPage()), 0o644)
}

// writePages writes a page for a command and for each subcommand.
func writePages(dir string, cmd *cobra.Command) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(page(cmd)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writePages(dir, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func page(cmd *cobra.Command) string {
	var b strings.Builder
	// UseLine includes the flags of parent commands only after these flags were requested.
	own, global := cmd.LocalNonPersistentFlags(), persistentFlags(cmd)
	fmt.Fprintf(&b, "# %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), cmd.Short, cmd.UseLine())
	if cmd.Long != "" {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimSpace(cmd.Long))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\n## Examples\n\n```\n%s\n```\n", cmd.Example)
	}
	writeFlags(&b, "Flags", own)
	writeFlags(&b, "Global flags", global)
	writeCommands(&b, cmd)
	return b.String()
}

func persistentFlags(cmd *cobra.Command) *pflag.FlagSet {
	if cmd.HasParent() {
		return cmd.InheritedFlags()
	}
	return cmd.PersistentFlags()
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\n## %s\n\n```\n%s```\n", title, flags.FlagUsages())
	}
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	b.WriteString("\n## Commands\n\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			name := strings.ReplaceAll(sub.CommandPath(), " ", "_")
			fmt.Fprintf(b, "* [%s](%s.md): %s\n", sub.CommandPath(), name, sub.Short)
		}
	}
}

// fieldsPage returns the table of the Pod's fields.
func fieldsPage() string {
	var b strings.Builder
	b.WriteString("# The fields of a Pod\n\n" +
		"This page is generated from the table that podctl itself uses. " +
		"A row also applies to all fields below its field,\n" +
		"unless they have a row of their own. `container` stands for `spec.containers`, `spec.initContainers` and\n" +
		"`spec.ephemeralContainers`; `volume` stands for `spec.volumes`.\n\n" +
		"*Support*: podctl honours the field, reports that it has no effect, or refuses the manifest.\n\n" +
		"*Change* is the effect of an edit on a running pod:\n\n" +
		"| change | effect |\n|---|---|\n" +
		"| replace | podctl replaces the containers that have the field |\n" +
		"| sandbox | podctl recreates the sandbox |\n" +
		"| in place | podctl changes the running container |\n" +
		"| live | the edit takes effect with the next pass, and nothing restarts |\n" +
		"| next start | the edit takes effect when a container starts the next time |\n" +
		"| new pod | the edit takes effect after you have deleted the pod and applied it again |\n" +
		"| none | the edit does not change a running pod |\n\n" +
		"*In a cluster* is the support for pods of an API server, where it differs. " +
		"The node rejects a pod that uses a\n*refused* field, with the reason `UnsupportedPodFeature`.\n\n" +
		"| field | support | change | needs | why | in a cluster |\n|---|---|---|---|---|---|\n")
	rows := fields.All()
	slices.SortFunc(rows, func(a, b fields.Field) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range rows {
		cluster := ""
		if f.Cluster != "" {
			cluster = fmt.Sprintf("%s: %s", f.Cluster, f.ClusterNote)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n",
			f.Path, f.Support, f.Change, f.Needs, f.Note, cluster)
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service"} {
		fmt.Fprintf(&b, "\n## The fields of a %s\n\n| field | support | why |\n|---|---|---|\n", kind)
		rows := fields.Kind(kind)
		slices.SortFunc(rows, func(a, b fields.Field) int { return strings.Compare(a.Path, b.Path) })
		for _, f := range rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, f.Support, f.Note)
		}
	}
	return b.String()
}
