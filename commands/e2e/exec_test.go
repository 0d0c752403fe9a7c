//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

const inside = `apiVersion: v1
kind: Pod
metadata: {name: inside}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [serve, --http, ":8080"]
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {port: http}, periodSeconds: 1}
  - {name: echo, image: "registry.local/podctl/demo:1", args: [cat], stdin: true, stdinOnce: true}
`

// streamed is the number of bytes that go through a container and back.
const streamed = 64 << 20

// testExec: exit codes, bytes and errors of commands in containers are exact.
func testExec(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, inside))
	for _, c := range []struct {
		args    []string
		code    int
		printed string
	}{
		{[]string{"inside", "--", "/demo", "exit", "7"}, 7, `Defaulted container "app" out of: app, echo`},
		{[]string{"inside", "-c", "echo", "--", "/demo", "exit", "0"}, 0, ""},
		{[]string{"inside", "--", "/absent"}, 127, "/absent"},
		{[]string{"absent", "--", "/demo"}, 127, "no pod default/absent"},
		{[]string{"inside", "-c", "absent", "--", "/demo"}, 127, "it has app, echo"},
		{[]string{"inside"}, 126, "exec POD -- COMMAND"},
	} {
		r := m.run(t, append([]string{"exec"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.printed) || strings.Contains(r.stderr, "rpc error") {
			t.Errorf("exec %v: exit code %d, want %d\n%s", c.args, r.code, c.code, r.stderr)
		}
	}
	testExecBytes(t, m)
	testExecAs(t, m)
	testExecFullDisk(t, m)
	testExecTerminal(t, m)
	testExecVanished(t, m)
	m.must(t, "delete", "--force", "inside")
}

// testExecAs: a command with another user, directory or variables does not differ from the container in anything else.
// Its exit codes, bytes and errors are also exact.
func testExecAs(t *testing.T, m *machine) {
	status := m.must(t, "exec", "-q", "-u", "1000:2000", "-w", "/", "inside", "--", "/demo", "read", "/proc/self/status").stdout
	own := m.must(t, "exec", "-q", "inside", "--", "/demo", "read", "/proc/self/status").stdout
	for _, field := range []string{"CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp"} {
		if got, want := lineOf(status, field), lineOf(own, field); got != want || got == "" {
			t.Errorf("%q with --user, %q without", got, want)
		}
	}
	for field, want := range map[string]string{
		"Uid": "Uid:\t1000\t1000\t1000\t1000", "Gid": "Gid:\t2000\t2000\t2000\t2000",
		"CapEff": "CapEff:\t0000000000000000",
	} {
		if got := lineOf(status, field); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	in, out := []string{"exec", "-q", "-u", "1000"}, []string{"exec", "-q"}
	cgroup := []string{"inside", "--", "/demo", "read", "/proc/self/cgroup"}
	_, there, _ := strings.Cut(m.must(t, append(in, cgroup...)...).stdout, "\n")
	if _, here, _ := strings.Cut(m.must(t, append(out, cgroup...)...).stdout, "\n"); there != here {
		t.Errorf("in the cgroup %s, not in %s", there, here)
	}
	for _, c := range []struct {
		args    []string
		code    int
		printed string
	}{
		{
			[]string{"-e", "A=b c", "-e", "HOSTNAME=x", "inside", "--", "/demo", "read", "/proc/self/environ"},
			0,
			"\x00HOSTNAME=x\x00",
		},
		{[]string{"-e", "A=b c", "inside", "--", "/demo", "read", "/proc/self/environ"}, 0, "\x00A=b c\x00"},
		{[]string{"-w", "/proc", "inside", "--", "/demo", "exit", "7"}, 7, ""},
		{[]string{"-w", "/absent", "inside", "--", "/demo"}, 126, "chdir"},
		{[]string{"-e", "A=b", "inside", "--", "/absent"}, 127, "/absent"},
		{[]string{"-u", "missing", "inside", "--", "/demo"}, 126, "unable to find user missing"},
	} {
		r := m.run(t, append([]string{"exec", "-q"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.printed) {
			t.Errorf("exec %v: exit code %d, want %d\n%s%s", c.args, r.code, c.code, r.stdout, r.stderr)
		}
	}
	testBytes(t, m, "-w", "/")
	// An interrupted command must not run any longer.
	cmd := startSleep(t, m, "-u", "1000", "inside")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != exit.Interrupted {
		t.Errorf("interrupted: %v", err)
	}
}

// startSleep executes a command that does not end by itself, and waits until it runs.
func startSleep(t *testing.T, m *machine, args ...string) *exec.Cmd {
	t.Helper()
	cmd := m.command(t.Context(), append(append([]string{"exec"}, args...), "--", "/demo", "sleep")...)
	var out, errs lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the command runs", func() bool { return strings.Contains(out.String(), "sleeping\n") })
	return cmd
}

// lineOf returns the line of a field in the status of a process.
func lineOf(status, field string) string {
	for line := range strings.Lines(status) {
		if strings.HasPrefix(line, field+":") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// testExecBytes: all bytes of the input arrive in the output.
func testExecBytes(t *testing.T, m *machine) { testBytes(t, m) }

func testBytes(t *testing.T, m *machine, flags ...string) {
	cmd := m.command(t.Context(),
		append(append([]string{"exec", "-q", "-i"}, flags...), "inside", "--", "/demo", "cat")...)
	source, sent, received := rand.NewChaCha8([32]byte{1}), sha256.New(), sha256.New()
	cmd.Stdin = io.TeeReader(io.LimitReader(source, streamed), sent)
	cmd.Stdout = received
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
		t.Errorf("the output of the container differs from its input")
	}
}

// testExecFullDisk: podctl reports an error if the output of a command cannot be written.
func testExecFullDisk(t *testing.T, m *machine) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close() //nolint:errcheck // nothing was written to it
	var printed bytes.Buffer
	cmd := m.command(t.Context(), "exec", "-q", "inside", "--", "/demo", "log", "--lines", "1")
	cmd.Stdout, cmd.Stderr = full, &printed
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 126 ||
		!strings.Contains(printed.String(), "no space left on device") {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), printed.String())
	}
}

// testExecTerminal: on a terminal, the process also has one, with the same size.
func testExecTerminal(t *testing.T, m *machine) {
	cmd := m.command(t.Context(), "exec", "-q", "-it", "inside", "--", "/demo", "exit", "9")
	script := exec.CommandContext(t.Context(), "script", "-qec", strings.Join(cmd.Args, " "), "/dev/null")
	out, err := script.CombinedOutput()
	if err == nil || script.ProcessState.ExitCode() != 9 || !strings.Contains(string(out), "exiting with 9\r\n") {
		t.Errorf("exec -it: exit code %d\n%q", script.ProcessState.ExitCode(), out)
	}
}

// testExecVanished: if a container is removed during a command, the command ends with the code of a killed process or
// an error.
func testExecVanished(t *testing.T, m *machine) {
	cmd := startSleep(t, m, "-i", "inside", "-c", "echo")
	m.must(t, "delete", "--force", "inside")
	if err := cmd.Wait(); err == nil || (cmd.ProcessState.ExitCode() != 137 && cmd.ProcessState.ExitCode() != 126) {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), cmd.Stderr)
	}
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, inside))
}

// testAttach: attach shows the output of a container's main process, and sends input to one that reads it.
func testAttach(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, inside))
	cmd := m.command(t.Context(), "attach", "-i", "-c", "echo", "inside")
	cmd.Stdin = strings.NewReader("over and out\n")
	if r := m.runWith(t, cmd); r.code != 0 || r.stdout != "over and out\n" {
		t.Errorf("attach: exit code %d, %q\n%s", r.code, r.stdout, r.stderr)
	}
	if r := m.run(t, "attach", "-i", "-c", "app", "inside"); r.code != 126 ||
		!strings.Contains(r.stderr, "stdin: true") {
		t.Errorf("attach to a container without stdin: exit code %d\n%s", r.code, r.stderr)
	}
	m.must(t, "delete", "--force", "inside")
}

// testPortForward: connections work on several ports, and the end of the pod ends the command.
func testPortForward(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, inside))
	if r := m.run(t, "port-forward", "inside", "nothing"); r.code != 1 ||
		!strings.Contains(r.stderr, `no port "nothing"`) {
		t.Errorf("an unknown port: exit code %d\n%s", r.code, r.stderr)
	}
	cmd, ports := forwarding(t, m, "inside", ":http", ":8080")
	for _, port := range ports {
		for range 3 {
			reply, err := http.Get("http://127.0.0.1:" + port + "/") //nolint:noctx // a test
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(reply.Body)
			if err = errors.Join(err, reply.Body.Close()); err != nil || !strings.Contains(string(body), "hello") {
				t.Errorf("port %s answers %q: %v", port, body, err)
			}
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("interrupted: exit code %d", cmd.ProcessState.ExitCode())
	}
	testRefusedForward(t, m)
	m.must(t, "delete", "--force", "inside")
}

// testRefusedForward: the error names the port on which no process listens.
func testRefusedForward(t *testing.T, m *machine) {
	t.Helper()
	cmd, ports := forwarding(t, m, "inside", ":7777")
	if reply, err := http.Get("http://127.0.0.1:" + ports[0] + "/"); err == nil { //nolint:noctx // a test
		_ = reply.Body.Close()
		t.Error("a program answers on a port without a listener")
	}
	_ = cmd.Wait() // Its exit code is checked below.
	if printed := cmd.Stderr.(fmt.Stringer).String(); cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(printed, "7777") || !strings.Contains(printed, "refused") {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), printed)
	}
}

// forwarding starts port-forward and returns the local ports.
func forwarding(t *testing.T, m *machine, args ...string) (*exec.Cmd, []string) {
	t.Helper()
	cmd := m.command(context.Background(), append([]string{"port-forward", "--address", "127.0.0.1"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ports []string
	for range len(args) - 1 {
		var address string
		var remote int
		if _, err := fmt.Fscanf(out, "Forwarding from %s -> %d\n", &address, &remote); err != nil {
			t.Fatal(err)
		}
		_, port, _ := strings.Cut(address, ":")
		ports = append(ports, port)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // the rest of the output does not matter
	return cmd, ports
}

// testCopy: trees are copied into and out of a container without changes, and links cannot leave the container.
func testCopy(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, inside))
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.MkdirAll(filepath.Join(tree, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(tree, "a", "b", "run"), bytes.Repeat([]byte("podctl"), 1<<18), 0o751)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(tree, "shadow")); err != nil {
		t.Fatal(err)
	}
	m.must(t, "cp", tree, "inside:/srv")
	m.must(t, "cp", tree, "inside:/srv")
	m.must(t, "cp", "inside:/srv", filepath.Join(dir, "back"))
	back := filepath.Join(dir, "back", "tree")
	diff := exec.CommandContext(t.Context(), "diff", "-r", "--no-dereference", tree, back)
	if out, err := diff.CombinedOutput(); err != nil {
		t.Errorf("the copied files differ: %s", out)
	}
	if info, err := os.Stat(filepath.Join(dir, "back", "tree", "a", "b", "run")); err != nil || info.Mode() != 0o751 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if r := m.run(t, "cp", "inside:/srv/tree/shadow", dir); r.code != 1 ||
		!strings.Contains(r.stderr, "in the container") {
		t.Errorf("a link out of the destination: exit code %d\n%s", r.code, r.stderr)
	}
	for _, args := range [][]string{{"a", "b"}, {"inside:/a", "inside:/b"}, {"inside:", "b"}} {
		if r := m.run(t, append([]string{"cp"}, args...)...); r.code != 1 {
			t.Errorf("cp %v: exit code %d", args, r.code)
		}
	}
	m.must(t, "delete", "--force", "inside")
}

// testDebug: a debug container joins the running pod, all commands know it, and a later apply does not stop it.
func testDebug(t *testing.T, m *machine) {
	manifest := write(t, inside)
	m.must(t, "apply", "--wait", "--timeout", "30s", manifest)
	before := m.ids(t, "inside")
	m.must(t, "debug", "inside", "-c", "probe", "--image", "registry.local/podctl/demo:1", "--target", "app", "--",
		"/demo", "sleep")
	if r := m.must(t, "exec", "inside", "-c", "probe", "--", "/demo", "read", "/proc/1/cmdline"); !strings.Contains(r.stdout, "serve") {
		t.Errorf("the debug container does not see the processes of its target:\n%q", r.stdout)
	}
	if r := m.must(t, "get", "--containers", "inside"); !strings.Contains(squeezed(r.stdout), "inside probe ephemeral Running") {
		t.Errorf("get --containers:\n%s", r.stdout)
	}
	m.must(t, "apply", manifest)
	after := m.ids(t, "inside")
	if after["probe"] == "" || after["app"] != before["app"] || after["echo"] != before["echo"] {
		t.Errorf("containers before %v, after %v", before, after)
	}
	if p := m.plan(t, manifest); len(p.Steps) != 0 {
		t.Errorf("a debug container changes the plan: %+v", p.Steps)
	}
	cmd := m.command(t.Context(), "debug", "-q", "-i", "inside", "--image", "registry.local/podctl/demo:1", "--",
		"/demo", "cat")
	cmd.Stdin = strings.NewReader("hello from outside\n")
	if r := m.runWith(t, cmd); r.code != 0 || r.stdout != "hello from outside\n" {
		t.Errorf("debug -i: exit code %d, %q\n%s", r.code, r.stdout, r.stderr)
	}
	r := m.run(t, "debug", "-q", "-i", "inside", "--image", "registry.local/podctl/demo:1", "--",
		"/demo", "exit", "--after", "500ms", "5")
	if r.code != 5 {
		t.Errorf("debug -i of a process that exits with 5: exit code %d\n%s", r.code, r.stderr)
	}
	for _, flag := range []string{"-i", "-it"} {
		// The container has ended before a connection was possible, and has no terminal.
		r = m.run(t, "debug", "-q", flag, "inside", "--image", "registry.local/podctl/demo:1", "--",
			"/demo", "log", "--lines", "2")
		if r.code != 0 || r.stdout != "line 1\nline 2\n" {
			t.Errorf("debug %s of a process that exits at once: exit code %d, %q\n%s", flag, r.code, r.stdout, r.stderr)
		}
	}
	r = m.run(t, "debug", "-q", "--attach", "inside", "--image", "registry.local/podctl/demo:1", "--",
		"/demo", "log", "--lines", "2")
	if r.stdout != "line 1\nline 2\n" {
		t.Errorf("debug --attach of a process that exits at once: exit code %d, %q\n%s", r.code, r.stdout, r.stderr)
	}
	for _, args := range [][]string{
		{"inside", "-c", "probe", "--image", "registry.local/podctl/demo:1"},
		{"inside", "--image", "registry.local/absent:1", "--image-pull-policy", "Never"},
		{"inside", "--image", "registry.local/podctl/demo:1", "--target", "nobody"},
	} {
		if r := m.run(t, append([]string{"debug"}, args...)...); r.code != 126 {
			t.Errorf("debug %v: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
	m.must(t, "delete", "inside")
	if left := m.ids(t, "inside"); len(left) != 0 {
		t.Errorf("leftovers after the deletion: %v", left)
	}
}

const steady = `apiVersion: v1
kind: Pod
metadata: {name: steady}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [log, --forever, --every, 100ms]
    livenessProbe: {exec: {command: [/demo, check, file, /demo]}, periodSeconds: 1, failureThreshold: 1}
`

// testRuntimeRestart: if the runtime dies, commands that depend on a connection end with a clear message. Commands that
// only observe continue when it is back. No probe fails because of it.
func testRuntimeRestart(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, inside))
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, steady))
	m.must(t, "apply", write(t, strings.ReplaceAll(ending, "200ms", "5s")))
	before := m.ids(t, "steady")
	var printed, logged, probed lockedBuffer
	execs := m.command(t.Context(), "exec", "-q", "inside", "--", "/demo", "sleep")
	waits := m.command(t.Context(), "wait", "--for=completed", "--timeout", "60s", "ending")
	logs := m.command(t.Context(), "logs", "-f", "--tail", "1", "steady")
	probes := m.command(t.Context(), "probe", "-w", "steady")
	execs.Stderr, logs.Stdout, logs.Stderr, probes.Stdout, probes.Stderr = &printed, &logged, &logged, &probed, &probed
	for _, cmd := range []*exec.Cmd{execs, waits, logs, probes} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool {
		return strings.Contains(logged.String(), "line") && strings.Contains(probed.String(), "Success")
	})
	killContainerd(t, m)
	if err := execs.Wait(); err == nil || execs.ProcessState.ExitCode() != 126 ||
		!strings.Contains(printed.String(), "connection was lost") {
		t.Errorf("exec: exit code %d\n%s", execs.ProcessState.ExitCode(), printed.String())
	}
	for _, args := range [][]string{{"probe", "steady"}, {"apply", write(t, steady)}, {"delete", "steady"}} {
		if r := m.run(t, args...); r.code != 1 ||
			!strings.Contains(r.stderr, "does not answer") && !strings.Contains(r.stderr, "no such socket") {
			t.Errorf("%v without a runtime: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
	m.must(t, "node", "up")
	if err := waits.Wait(); waits.ProcessState.ExitCode() != exit.PodFailed {
		t.Errorf("wait: %v", err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("logs:\n%s\nprobes:\n%s", logged.String(), probed.String())
		}
	}()
	lines, verdicts := len(logged.String()), strings.Count(probed.String(), "Success")
	waitFor(t, func() bool {
		return len(logged.String()) > lines && strings.Count(probed.String(), "Success") > verdicts
	})
	for _, cmd := range []*exec.Cmd{logs, probes} {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("%v: %v\n%s%s", cmd.Args, err, logged.String(), probed.String())
		}
	}
	if m.must(t, "apply", "--probe", write(t, steady)); !sameMap(before, m.ids(t, "steady")) {
		t.Errorf("the restart of the runtime has restarted a healthy container\n%s", probed.String())
	}
	m.must(t, "delete", "--force", "inside", "ending", "steady")
}
