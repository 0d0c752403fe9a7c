package kubernetes

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testExec checks commands in a container: their streams, exit codes and errors.
func (k *kubectl) testExec(t *testing.T) {
	k.start(t, "web", 2, "serve")
	if out := k.must(t, "exec", "web", "--", "/demo", "print"); !strings.Contains(out, "hostname web\n") {
		t.Error(out)
	}
	big := strings.Repeat("0123456789abcde\n", 1<<16)
	if out := k.mustWith(t, big, "exec", "-i", "web", "--", "/demo", "cat"); out != big {
		t.Errorf("%d of %d bytes came back", len(out), len(big))
	}
	k.fails(t, 7, "\ncommand terminated with exit code 7\n", "exec", "web", "--", "/demo", "exit", "7")
	k.fails(t, 1, "\ndemo: open /absent: no such file or directory\ncommand terminated with exit code 1\n",
		"exec", "web", "--", "/demo", "read", "/absent")
	k.fails(t, 1, `exec: "/absent": stat /absent: no such file or directory`, "exec", "web", "--", "/absent")
	k.fails(t, 1, "\nerror: container absent is not valid for pod web out of: web\n", "exec", "web", "-c", "absent", "--", "/demo", "print")
	// A command ends with its pod.
	command := startSession(t, k.command(t, "exec", "web", "--", "/demo", "sleep"))
	command.expect(t, "sleeping\n", 1)
	k.must(t, "delete", "pod", "web")
	command.end(t, 137)
}

// testTerminal checks a shell in a terminal, and a pod that kubectl run makes for it.
func (k *kubectl) testTerminal(t *testing.T) {
	k.makeShell(t, "shell", stay, false)
	k.ready(t, "shell")
	shell := startTerminal(t, k.command(t, "exec", "-it", "shell", "--", "/bin/sh"))
	shell.expect(t, "# ", 1)
	shell.send(t, "stty size; tty\n")
	shell.expect(t, "45 123\r\n/dev/pts/", 1)
	shell.send(t, "cat\n")
	shell.send(t, "typed\n")
	shell.expect(t, "typed\r\n", 2) // by the terminal and by cat
	shell.send(t, "\x03")           // ends cat
	shell.expect(t, "# ", 3)
	shell.send(t, "exit 5\n")
	shell.expect(t, "command terminated with exit code 5", 1)
	shell.end(t, 5)

	once := startTerminal(t, k.command(t, "run", "once", "-it", "--rm", "--restart", "Never", "--image", firstImage,
		"--overrides", overrides(2), "--", "cat"))
	once.expect(t, "try pressing enter.", 1)
	once.send(t, "typed\n")
	once.expect(t, "typed\r\n", 2)
	once.send(t, "\x04") // ends the input
	once.expect(t, `pod "once" deleted`, 1)
	once.end(t, 0)
}

// testAttach checks connections to the process of a container, which go on without it.
func (k *kubectl) testAttach(t *testing.T) {
	k.makeShell(t, "shell", `while read line; do echo "got $line"; done`, true)
	k.ready(t, "shell")
	for _, word := range []string{"first", "second"} {
		attached := startTerminal(t, k.command(t, "attach", "-it", "shell"))
		attached.expect(t, "try pressing enter.", 1)
		attached.send(t, word+"\n")
		attached.expect(t, "got "+word+"\r\n", 1)
		attached.kill()
	}
	log := strings.ReplaceAll(k.must(t, "logs", "shell"), "\r", "")
	if log != "first\ngot first\nsecond\ngot second\n" {
		t.Errorf("%q", log)
	}
	if count := k.get(t, "shell", "{.status.containerStatuses[0].restartCount}"); count != "0" {
		t.Error("the container has restarted")
	}
}

// testCopy checks files and directories in both directions.
func (k *kubectl) testCopy(t *testing.T) {
	k.makeShell(t, "shell", stay, false)
	k.start(t, "web", 2, "serve")
	k.ready(t, "shell")
	dir, content := t.TempDir(), make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{})
	random.Read(content) //nolint:errcheck // it never fails
	write(t, filepath.Join(dir, "tree/large"), string(content))
	write(t, filepath.Join(dir, "tree/below/small"), "small\n")
	k.must(t, "cp", filepath.Join(dir, "tree"), "shell:/data/tree")
	k.must(t, "cp", "shell:/data/tree", filepath.Join(dir, "back"))
	k.must(t, "cp", "default/shell:data/tree/large", filepath.Join(dir, "large"), "-c", "sh")
	for _, name := range []string{"back/large", "large"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "back/below/small")); err != nil || string(got) != "small\n" {
		t.Errorf("%q, %v", got, err)
	}
	k.prints(t, "small\n", "exec", "shell", "--", "/bin/cat", "/data/tree/below/small")
	k.fails(t, 1, `exec: "tar": executable file not found in $PATH`, "cp", filepath.Join(dir, "large"), "web:/tmp/large")
}

var forwarded = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> `)

// forward forwards a free port of this machine to a pod, and returns its address.
func (k *kubectl) forward(t *testing.T, pod, port string) (*session, string) {
	t.Helper()
	s := startSession(t, k.command(t, "port-forward", "pod/"+pod, "--address", "127.0.0.1", ":"+port))
	s.expect(t, "-> "+port+"\n", 1)
	return s, "http://" + forwarded.FindStringSubmatch(s.output.String())[1]
}

// testPorts checks forwarded ports. A port without a listener is one of them.
func (k *kubectl) testPorts(t *testing.T) {
	k.start(t, "web", 2, "serve")
	open, address := k.forward(t, "web", "8080")
	for range 3 {
		if text, err := fetch(t.Context(), address+"/", ""); err != nil || string(text) != "hello\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if text, err := fetch(t.Context(), address+"/big", ""); err != nil || len(text) != 1<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	closed, none := k.forward(t, "web", "9")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, none, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := send(request, ""); err == nil {
		t.Errorf("a port without a listener: %s", text)
	}
	closed.expect(t, "connect: connection refused", 1)
	closed.expect(t, "error: lost connection to pod", 1)
	closed.end(t, 1)
	// The other connection is open still.
	if text, err := fetch(t.Context(), address+"/", ""); err != nil || string(text) != "hello\n" {
		t.Errorf("%q, %v", text, err)
	}
	k.must(t, "delete", "pod", "web")
	if text, err := fetch(t.Context(), address+"/", ""); err == nil {
		t.Errorf("a deleted pod: %s", text)
	}
	open.expect(t, "error: lost connection to pod", 1)
	open.end(t, 1)
	k.make(t, "done", object{"restartPolicy": "Never", "containers": containers("main exit 0")})
	k.await(t, "done", "jsonpath={.status.phase}=Succeeded")
	k.fails(t, 1, "\nerror: unable to forward port because pod is not running. Current status=Succeeded\n", "port-forward", "done", ":8080")
}

// testDebug checks debug containers, a copy of a pod, and a pod on the node.
func (k *kubectl) testDebug(t *testing.T) {
	k.start(t, "web", 2, "serve")
	k.must(t, "debug", "web", "--image", firstImage, "--target", "web", "--container", "look", "--profile", "general", "--",
		"/demo", "read", "/proc/1/cmdline")
	k.await(t, "web", "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.reason}=Completed")
	if log := k.must(t, "logs", "web", "-c", "look"); !strings.Contains(log, "/demo\x00serve\x00") {
		t.Errorf("%q", log)
	}
	debug := startTerminal(t, k.command(t, "debug", "-it", "web", "--image", firstImage, "--container", "talk", "--profile", "general",
		"--", "/demo", "cat"))
	debug.expect(t, "try pressing enter.", 1)
	debug.send(t, "typed\n")
	debug.expect(t, "typed\r\n", 2)
	debug.send(t, "\x04") // ends the input
	debug.end(t, 0)
	k.await(t, "web", "jsonpath={.status.ephemeralContainerStatuses[1].state.terminated.exitCode}=0")
	if log := k.must(t, "logs", "web", "-c", "talk"); !strings.Contains(log, "typed") {
		t.Errorf("%q", log)
	}
	if got := k.get(t, "web", "{.status.containerStatuses[0].restartCount} {.status.phase}"); got != "0 Running" {
		t.Error(got)
	}
	k.must(t, "debug", "web", "--image", firstImage, "--copy-to", "copy", "--container", "extra", "--same-node", "--profile", "general", "--",
		"/demo", "serve", "--http", ":9090")
	k.ready(t, "copy")
	if got := strings.Fields(k.must(t, "get", "pod", "copy", "--no-headers"))[1]; got != "2/2" {
		t.Error(got)
	}
	// The root directory of the node is in /host of its debug pod.
	name := regexp.MustCompile(`debugging pod (\S+) `).FindStringSubmatch(k.must(t,
		"debug", "node/"+nodeName, "--image", firstImage, "--profile", "sysadmin", "--", "/demo", "read", "/host/etc/hosts"))
	if name == nil {
		t.Fatal("no debug pod")
	}
	k.await(t, name[1], "jsonpath={.status.phase}=Succeeded")
	if log := k.must(t, "logs", name[1]); !strings.Contains(log, nodeIP+" "+nodeName) {
		t.Error(log)
	}
}
