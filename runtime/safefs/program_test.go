package safefs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheCheckedProgramRuns checks that the checked program runs, even if its path leads to another one by then. The
// program gets its path as its name, and no descriptor.
func TestTheCheckedProgramRuns(t *testing.T) {
	bin, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(at("bin"), 0o755), os.Mkdir(at("other"), 0o755))
	text, err := os.ReadFile(bin)
	must(t, err, os.WriteFile(at("bin/tool"), text, 0o755), os.Symlink("tool", at("bin/linked")),
		os.WriteFile(at("other/tool"), []byte("#!/bin/sh\necho other\n"), 0o755),
		os.Symlink("tool", at("other/linked")))
	for _, name := range []string{"tool", "linked"} {
		program, err := LookPath(name, at("bin"))
		must(t, err)
		must(t, os.Rename(at("bin"), at("aside")), os.Rename(at("other"), at("bin")))
		out, err := program.Command(t.Context(), "-c", `echo checked $0; readlink /proc/$$/fd/*; :`).CombinedOutput()
		must(t, os.Rename(at("bin"), at("other")), os.Rename(at("aside"), at("bin")))
		must(t, err, program.Close())
		begin, files, _ := strings.Cut(string(out), "\n")
		if want := "checked " + at("bin/"+name); begin != want || strings.Contains(files, dir) {
			t.Errorf("%s: %s, want %s", name, out, want)
		}
	}
}

// TestExec checks that Exec replaces the process with the program, which gets its arguments and its environment.
func TestExec(t *testing.T) {
	const variable = "PODCTL_TEST_EXEC"
	bin, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	if path := os.Getenv(variable); path != "" {
		program, openErr := OpenProgram(path)
		must(t, openErr)
		t.Fatal(program.Exec([]string{"name", "-c", `echo $0 $KEY $1; readlink /proc/$$/exe; :`, "tool", "argument"}, []string{"KEY=value"}))
	}
	path := filepath.Join(t.TempDir(), "tool")
	text, err := os.ReadFile(bin)
	must(t, err, os.WriteFile(path, text, 0o755))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestExec$")
	cmd.Env = append(os.Environ(), variable+"="+path)
	out, err := cmd.CombinedOutput()
	if want := "tool value argument\n" + path + "\n"; err != nil || string(out) != want {
		t.Errorf("%q %v, want %q", out, err, want)
	}
}

// TestScriptsRun checks that a script is run by its path, which it gets as its name.
func TestScriptsRun(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\necho $0 $1\n"), 0o755))
	program, err := LookPath("tool", dir)
	must(t, err)
	out, err := program.Command(t.Context(), "x").CombinedOutput()
	if want := filepath.Join(dir, "tool") + " x\n"; err != nil || string(out) != want {
		t.Errorf("%q %v, want %q", out, err, want)
	}
	must(t, program.Close())
}

// TestOpenProgram checks that a program named by path is checked like one found by name.
func TestOpenProgram(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "his"), 0o755), os.WriteFile(filepath.Join(dir, "his/tool"), nil, 0o755),
		os.WriteFile(filepath.Join(dir, "data"), nil, 0o644), os.Chown(filepath.Join(dir, "his"), foreignUID, foreignUID))
	for path, want := range map[string]string{
		filepath.Join(dir, "his/tool"): "belongs to user 65534", filepath.Join(dir, "data"): "executable file not found",
		dir: "executable file not found", filepath.Join(dir, "absent"): "executable file not found", "his/tool": "is not absolute",
	} {
		if _, err := OpenProgram(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
