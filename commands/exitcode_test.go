package commands

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
)

// podCommands returns the commands that take a pod or its manifest, with POD as the placeholder.
func podCommands() []string {
	return []string{
		"plan POD", "diff POD", "apply POD", "run POD", "restart POD", "probe POD", "delete POD", "get POD",
		"describe POD", "events POD",
		"top --once POD", "logs POD", "wait POD", "validate POD", "render POD", "snapshot POD", "export POD",
		"exec POD -- true",
		"attach POD", "port-forward POD 80", "cp POD:/x .", "debug POD --image i", "image pull -f POD",
	}
}

// TestCodesAreListed checks the exit codes for a refused manifest, an unreachable runtime and an interrupt. The help of
// each command must list them.
func TestCodesAreListed(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"bad.yaml":  "{apiVersion: v1, kind: Pod}",
		"good.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: i}]}}",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, line := range podCommands() {
		bad := strings.Fields(strings.ReplaceAll(line, "POD", "bad.yaml"))
		good := strings.Fields(strings.ReplaceAll(line, "POD", "good.yaml"))
		checkListed(t.Context(), t, bad)
		checkListed(t.Context(), t, good)
		checkListed(interrupted, t, good)
	}
}

func checkListed(ctx context.Context, t *testing.T, args []string) {
	t.Helper()
	code, stderr := callInVain(ctx, filepath.Join(t.TempDir(), "state"), args)
	listed := codesOf(t, args) //nolint:contextcheck // the call only reads a help text
	if !slices.Contains(listed, code) {
		t.Errorf("%v: exit code %d, its help has %v\n%s", args, code, listed, stderr)
	}
}

// callInVain runs a command line without a runtime.
func callInVain(ctx context.Context, state string, args []string) (code int, stderr string) {
	var out, errs bytes.Buffer
	env := &Env{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, Getenv: func(string) string { return "" },
	}
	code = Main(ctx, env, append([]string{"--state-dir", state, "-r", "unix:///absent.sock"}, args...))
	return code, errs.String()
}

// codesOf returns the exit codes in the help of a command.
func codesOf(t *testing.T, args []string) []int {
	t.Helper()
	cmd, _, err := New(&Env{Getenv: func(string) string { return "" }}).Find(args)
	if err != nil {
		t.Fatal(err)
	}
	var codes []int
	_, text, _ := strings.Cut(cmd.Long, "Exit codes:\n")
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		low, high, isRange := strings.Cut(word, "-")
		if !isRange {
			high = low
		}
		from, to := number(t, low), number(t, high)
		for code := from; code <= to; code++ {
			codes = append(codes, code)
		}
	}
	return codes
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReadmeListsTheCodes checks that the README has the exit codes of the help, in the same words.
func TestReadmeListsTheCodes(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "Exit codes: " + strings.Join(exit.Meanings(), " · ") + "."
	if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(string(text), "`", "")), " "), want) {
		t.Errorf("the README does not contain %q", want)
	}
}

// TestExitCodeOfUnreachableRuntime checks that a missing pod exits with 127, and an unreachable runtime with 126.
func TestExitCodeOfUnreachableRuntime(t *testing.T) {
	dir := commandstest.Applied(t, commandstest.Pods)
	for _, line := range []string{"exec POD -- true", "attach POD", "debug POD --image i"} {
		for pod, want := range map[string]int{"hello": exit.ExecFailed, "nobody": exit.NotFound} {
			args := strings.Fields(strings.ReplaceAll(line, "POD", pod))
			if code, stderr := callInVain(t.Context(), dir, args); code != want {
				t.Errorf("%v: exit code %d, want %d\n%s", args, code, want, stderr)
			}
		}
	}
}
