package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands"
)

// TestMan checks that every command has a page with its exit codes, and that a second run gives the same bytes.
func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1770000000")
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, to := range []string{first, second} {
		if err := run([]string{"man", to}); err != nil {
			t.Fatal(err)
		}
	}
	pages := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page := read(t, filepath.Join(first, name))
		pages++
		if !strings.Contains(page, "Feb 2026") || strings.Contains(page, "cobra") {
			t.Errorf("%s: date or origin is wrong", name)
		}
		if leaf := !cmd.HasSubCommands(); leaf && !strings.Contains(page, ".SH EXIT STATUS\n.TP\n\\fB0") {
			t.Errorf("%s does not say how it ends\n%s", name, page)
		}
		if diff := cmp.Diff(page, read(t, filepath.Join(second, name))); diff != "" {
			t.Errorf("%s of a second run differs\n%s", name, diff)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(commands.New(commands.System()))
	if files, err := os.ReadDir(first); err != nil || len(files) != pages {
		t.Errorf("%d files for %d commands, %v", len(files), pages, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHelpTextIsNotMarkup checks that no text of a help is taken for markup.
func TestHelpTextIsNotMarkup(t *testing.T) {
	cmd := &cobra.Command{Use: "x", Long: "As *.yaml, <name> or a_b_c.\nMore." + "\n\nExit codes:\n  0 done\n  3 not yet"}
	forMan(cmd)
	want := "As \\*.yaml, \\<name> or a\\_b\\_c.\nMore.\n\n\n# EXIT STATUS\n**0**\n: done\n\n**3**\n: not yet\n\n"
	if diff := cmp.Diff(want, cmd.Long); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCompletionFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	if err := run([]string{"completions", dir}); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]string{
		"podctl.bash": "__start_podctl",
		"_podctl":     "#compdef podctl",
		"podctl.fish": "complete -c podctl",
	} {
		if !strings.Contains(read(t, filepath.Join(dir, name)), part) {
			t.Errorf("%s has no %s", name, part)
		}
	}
}

func TestInvalidArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"docs"}, {"nonsense", t.TempDir()}} {
		if err := run(args); err == nil {
			t.Errorf("%v: want an error", args)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := run([]string{"man", filepath.Join(t.TempDir(), "m")}); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Error(err)
	}
}

// TestPodctlDoesNotCarryTheGenerator checks that only the build tool links the generator of man pages.
func TestPodctlDoesNotCarryTheGenerator(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace", "../podctl", "../gendocs").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "md2man") {
		t.Fatal("the generator has no md2man: look for something else")
	}
	out, err = exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace", "../podctl").Output()
	if err != nil || strings.Contains(string(out), "md2man") || strings.Contains(string(out), "cobra/doc") {
		t.Errorf("podctl is linked with what writes man pages (%v)", err)
	}
}
