package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestUnits checks that the systemd units are well formed, and that podctl has the commands and flags they use. `make
// check-deb` checks the units with systemd itself.
func TestUnits(t *testing.T) {
	units, err := filepath.Glob("../docs/packaging/podctl*.*")
	if err != nil || len(units) != 2 {
		t.Fatal(units, err)
	}
	for _, path := range units {
		unit := readUnit(t, path)
		if len(unit["Unit/Description"]) != 1 || len(unit["Unit/Documentation"]) != 1 {
			t.Errorf("%s has no description", path)
		}
		for key, values := range unit {
			section, name, _ := strings.Cut(key, "/")
			if section != "Unit" && section != "Install" && section != "Service" {
				t.Errorf("%s: unknown section [%s]", path, section)
			}
			for _, value := range values {
				if strings.HasPrefix(name, "Exec") {
					checkCall(t, path, strings.Fields(value))
				}
			}
		}
	}
}

// readUnit reads the settings of a unit, keyed by "Section/Name".
func readUnit(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unit, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section = strings.Trim(line, "[]")
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || section == "" || value == "" {
			t.Errorf("%s: unknown setting %q", path, line)
		}
		unit[section+"/"+name] = append(unit[section+"/"+name], value)
	}
	return unit
}

// checkCall parses a command line in the same way as podctl, without running it.
func checkCall(t *testing.T, path string, words []string) {
	t.Helper()
	if words[0] != "/usr/bin/podctl" {
		t.Errorf("%s calls %s, which make install does not install", path, words[0])
		return
	}
	root := New(&Env{Getenv: func(string) string { return "" }})
	cmd, rest, err := root.Find(words[1:])
	if err != nil || cmd == root {
		t.Errorf("%s: unknown command %v (%v)", path, words, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: %v: %v", path, words, err)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "load" && !strings.Contains(f.Value.String(), "/usr/lib/podctl/pause.tar") {
			t.Errorf("%s loads %s, which is in no package", path, f.Value)
		}
	})
}
