package commands

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/commandstest"
)

// hint matches a podctl command line in backquotes.
var hint = regexp.MustCompile("`podctl ([a-z][^`\n]*)`")

// TestHintsNameCommands checks each command line in backquotes in errors, help texts and comments. podctl must accept
// its command, flags and arguments.
func TestHintsNameCommands(t *testing.T) {
	seen := 0
	for _, dir := range []string{".", "../runtime", "../podspec"} {
		for _, path := range sourcesBelow(t, dir) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range hint.FindAllStringSubmatch(string(text), -1) {
				seen++
				if err := checkLine(strings.Fields(strings.NewReplacer("%s", "X", "%d", "1").Replace(found[1]))); err != nil {
					t.Errorf("%s: %s: %v", path, found[0], err)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d hints were found", seen)
	}
}

// placeholder matches a word that stands for an argument.
var placeholder = regexp.MustCompile(`^[A-Z]{2,}$`)

// checkLine parses a command line without running it. A line without arguments may name a command that needs some.
func checkLine(words []string) error {
	root := New(commandstest.Env("", io.Discard, io.Discard, time.Now))
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if cmd == root {
		return fmt.Errorf("%s is no command", words[0])
	}
	if err := cmd.ParseFlags(rest); err != nil || len(rest) == 0 {
		return err
	}
	for _, arg := range cmd.Flags().Args() {
		if placeholder.MatchString(arg) && !strings.Contains(cmd.Use, arg) {
			return fmt.Errorf("the arguments are %s", cmd.Use)
		}
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// sourcesBelow returns the Go files below a directory, without tests.
func sourcesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
