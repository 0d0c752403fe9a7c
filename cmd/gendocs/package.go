package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// writeMan writes a man page for every command. Their date is SOURCE_DATE_EPOCH.
func writeMan(dir string, root *cobra.Command) error {
	if err := empty(dir); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	forMan(root)
	header := &doc.GenManHeader{Section: "1", Source: "podctl", Manual: "podctl manual"}
	return doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Header: header, Path: dir, CommandSeparator: "-"})
}

// forMan converts the help texts of a command and its subcommands to Markdown for man pages. It escapes words that look
// like markup, and keeps indented lists.
func forMan(cmd *cobra.Command) {
	var b strings.Builder
	for line := range strings.Lines(strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`).Replace(cmd.Long)) {
		if strings.HasPrefix(line, "Exit codes:") {
			line = "\n# EXIT STATUS\n"
		} else if code, meaning, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(line, "  ") {
			line = "**" + code + "**\n: " + meaning + "\n\n"
		}
		b.WriteString(line)
	}
	cmd.Long = b.String()
	for _, sub := range cmd.Commands() {
		forMan(sub)
	}
}

// writeCompletions writes the completion scripts with the names that shells expect.
func writeCompletions(dir string, root *cobra.Command) error {
	if err := empty(dir); err != nil {
		return err
	}
	for name, write := range map[string]func(string) error{
		"podctl.bash": func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"_podctl":     root.GenZshCompletionFile,
		"podctl.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
