//go:build e2e

package e2e

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const talkers = `apiVersion: v1
kind: Pod
metadata: {name: talkers, labels: {app: talk}}
spec:
  terminationGracePeriodSeconds: 1
  initContainers: [{name: first, image: "registry.local/podctl/demo:1", args: [log, --lines, "2"]}]
  containers:
  - {name: echo, image: "registry.local/podctl/demo:1", args: [cat], stdin: true}
  - {name: again, image: "registry.local/podctl/demo:1", args: [log, --lines, "3"]}
`

// testLogs: logs prints the logs of all runs, containers and files in order.
func testLogs(t *testing.T, m *machine) {
	manifest := write(t, talkers)
	m.must(t, "apply", "--wait=started", "--timeout", "30s", manifest)
	attach := m.command(t.Context(), "attach", "-i", "-c", "echo", "talkers")
	long := strings.Repeat("x", 40_000)
	attach.Stdin = strings.NewReader("one\n" + long + "\nthree\n")
	if r := m.runWith(t, attach); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"talkers"}, "one\n" + long + "\nthree\n"},
		{[]string{"talkers", "--tail", "1"}, "three\n"},
		{[]string{"talkers", "--limit-bytes", "5"}, "one\nx"},
		{[]string{"talkers", "first"}, "line 1\nline 2\n"},
		{[]string{"talkers", "-c", "first", "--prefix"}, "[pod/talkers/first] line 1\n[pod/talkers/first] line 2\n"},
		{[]string{"talkers", "--since-time", "2100-01-01T00:00:00Z"}, ""},
	} {
		if r := m.must(t, append([]string{"logs"}, c.args...)...); r.stdout != c.want {
			t.Errorf("logs %v: %.200q, want %.200q", c.args, r.stdout, c.want)
		}
	}
	for _, args := range [][]string{{"talkers", "--all-containers"}, {"-l", "app=talk", "--all-containers"}} {
		if r := m.must(t, append([]string{"logs"}, args...)...); !strings.Contains(r.stdout, "echo] three") ||
			!strings.Contains(r.stdout, "first] line 2") {
			t.Errorf("logs %v: %.300q", args, r.stdout)
		}
	}
	testLogsEnd(t, m)
	testLogsOfRuns(t, m, manifest)
	testLogFiles(t, m, manifest)
	m.must(t, "delete", "talkers")
}

const cutOff = `apiVersion: v1
kind: Pod
metadata: {name: cutoff}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [read, /proc/self/cmdline]}
  - {name: stays, image: "registry.local/podctl/demo:1", args: [sleep]}
`

// testLogsEnd: a last line without a line end is printed, and following ends with the pod.
func testLogsEnd(t *testing.T, m *machine) {
	t.Helper()
	m.must(t, "apply", "--wait=started", "--timeout", "30s", write(t, cutOff))
	waitFor(t, func() bool { return strings.HasSuffix(m.must(t, "logs", "cutoff", "app").stdout, "cmdline\x00") })
	r := m.must(t, "logs", "cutoff", "--all-containers")
	if !strings.Contains(r.stdout, "[app] /demo\x00read\x00/proc/self/cmdline\x00\n") {
		t.Errorf("a line without a newline:\n%s", r.stdout)
	}
	var out lockedBuffer
	follow := m.command(t.Context(), "logs", "-f", "cutoff", "stays")
	follow.Stdout = &out
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the log is followed", func() bool { return strings.Contains(out.String(), "sleeping\n") })
	m.must(t, "delete", "cutoff")
	if err := follow.Wait(); err != nil {
		t.Errorf("following the log of a deleted pod: %v", err)
	}
}

// testLogsOfRuns: the log of the previous run is kept, and following prints every run.
func testLogsOfRuns(t *testing.T, m *machine, manifest string) {
	t.Helper()
	var out lockedBuffer
	runs := func() int { return strings.Count(out.String(), "line 3\n") }
	follow := m.command(t.Context(), "logs", "-f", "-c", "again", "talkers")
	follow.Stdout = &out
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first run is printed", func() bool { return runs() > 0 })
	m.must(t, "apply", "--ignore-backoff", manifest)
	until(t, "the second run is printed", func() bool { return runs() > 1 })
	if err := follow.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := follow.Wait(); err == nil || follow.ProcessState.ExitCode() != 130 {
		t.Errorf("interrupted logs -f exits with %d", follow.ProcessState.ExitCode())
	}
	if runs() != 2 {
		t.Errorf("two runs were followed:\n%s", out.String())
	}
	if r := m.must(t, "logs", "-p", "-c", "again", "talkers"); strings.Count(r.stdout, "line 3\n") != 1 {
		t.Errorf("the previous run:\n%s", r.stdout)
	}
	if r := m.run(t, "logs", "-p", "-c", "echo", "talkers"); r.code != 1 ||
		!strings.Contains(r.stderr, "no previous run") {
		t.Errorf("without a previous run: exit code %d\n%s", r.code, r.stderr)
	}
}

// testLogFiles: apply rotates a large log, and logs reads across its files.
func testLogFiles(t *testing.T, m *machine, manifest string) {
	t.Helper()
	attach := m.command(t.Context(), "attach", "-i", "-c", "echo", "talkers")
	attach.Stdin = strings.NewReader(strings.Repeat(strings.Repeat("y", 1000)+"\n", 11<<10))
	attach.Stdout = nil
	if err := attach.Run(); err != nil {
		t.Fatal(err)
	}
	if r := m.must(t, "plan", manifest); !strings.Contains(r.stdout, "log echo") {
		t.Errorf("plan:\n%s", r.stdout)
	}
	m.must(t, "apply", manifest)
	rotated, err := filepath.Glob(filepath.Join(m.logs, "default_talkers_*", "echo", "0.log.*"))
	if err != nil || len(rotated) != 1 {
		t.Fatalf("rotated files: %v, %v", rotated, err)
	}
	compress(t, rotated[0])
	last := m.command(t.Context(), "attach", "-i", "-c", "echo", "talkers")
	last.Stdin = strings.NewReader("last\n")
	if err := last.Run(); err != nil {
		t.Fatal(err)
	}
	all := m.must(t, "logs", "talkers").stdout
	if lines := slices.Collect(strings.Lines(all)); len(lines) != 3+11<<10+1 || lines[0] != "one\n" ||
		lines[len(lines)-1] != "last\n" {
		t.Errorf("%d lines, the first %.20q, the last %.20q", len(lines), lines[0], lines[len(lines)-1])
	}
	if r := m.must(t, "logs", "--tail", "3", "talkers"); strings.Count(r.stdout, "\n") != 3 ||
		!strings.HasSuffix(r.stdout, "y\nlast\n") {
		t.Errorf("the last three lines over two files: %d lines", strings.Count(r.stdout, "\n"))
	}
}

func compress(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
