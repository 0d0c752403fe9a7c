//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A pod whose program and failing probe repeat the Secret in their output.
const talkative = `apiVersion: v1
kind: Secret
metadata: {name: talks}
stringData: {word: SECRET}
---
apiVersion: v1
kind: Pod
metadata: {name: talks}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: files, secret: {secretName: talks}}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    env: [{name: WORD, valueFrom: {secretKeyRef: {name: talks, key: word}}}]
    envFrom: [{secretRef: {name: talks}}]
    args: [sleep]
    volumeMounts: [{name: files, mountPath: /files}]
    livenessProbe: {exec: {command: [/demo, read, /files/word, /absent]}, failureThreshold: 1, periodSeconds: 1}
`

// testSecrets: no command prints the value of a Secret, not in debug logs and not in files, although a probe repeats
// it.
func testSecrets(t *testing.T, m *machine) {
	const secret, next = "hunter2-that-nobody-tells", "swordfish-that-comes-next"
	manifest := write(t, strings.Replace(talkative, "SECRET", secret, 1))
	changed := write(t, strings.Replace(talkative, "SECRET", next, 1))
	broken := write(t, strings.Replace(talkative, "stringData: {word: SECRET}",
		"stringData: {word: "+secret+", other: ["+secret+"]}", 1))
	file := filepath.Join(t.TempDir(), "plan.json")
	for _, args := range [][]string{
		{"plan", "-v", manifest},
		{"validate", manifest},
		{"render", "-o", "yaml", manifest},
		{"plan", "--save", file, manifest},
		{"apply", "-o", "json", "-v", "--log-format", "json", manifest},
		{"probe", "-o", "json", "talks"},
		{"probe", "talks"},
		{"plan", "-o", "json", "talks"},
		{"plan", "talks"},
		{"apply", "--dry-run", "-v", changed},
		{"plan", "-o", "yaml", "--show-unchanged", changed},
		{"apply", "-v", "--ignore-backoff", "--probe", "talks"},
		{"describe", "talks"},
		{"events", "talks"},
		{"events", "-o", "json", "talks"},
		{"get", "-o", "json", "talks"},
		{"get", "--containers", "talks"},
		{"snapshot", "talks"},
		{"export", "talks"},
		{"apply", broken},
		{"apply", "-v", changed},
		{"apply", "--plan", file, manifest},
		{"delete", "-v", "talks"},
		{"events", "talks"},
	} {
		r := m.run(t, args...)
		if r.stdout+r.stderr == "" {
			t.Errorf("podctl %v prints nothing", args)
		}
		wantHidden(t, fmt.Sprint(args), r.stdout+r.stderr, secret, next)
	}
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantHidden(t, "the saved plan", string(saved), secret, next)
	written := 0
	for _, dir := range []string{"events", "locks"} {
		for path, text := range textsBelow(t, filepath.Join(m.state, dir)) {
			written++
			wantHidden(t, path, text, secret, next)
		}
	}
	if written == 0 {
		t.Error("no events were written")
	}
}

func wantHidden(t *testing.T, where, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%s contains a secret: …%s…", where, text[max(0, i-200):min(len(text), i+len(form)+50)])
			}
		}
	}
}

func textsBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			texts[path] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

const moded = `apiVersion: v1
kind: Secret
metadata: {name: modes}
stringData: {word: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: modes}
data: {word: x}
---
apiVersion: v1
kind: Pod
metadata: {name: modes}
spec:
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: config, configMap: {name: modes}}
  - {name: secret, secret: {secretName: modes}}
  - {name: host, hostPath: {path: HOST/made, type: DirectoryOrCreate}}
  - {name: file, hostPath: {path: HOST/file, type: FileOrCreate}}
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts:
    - {name: scratch, mountPath: /scratch, subPath: inside}
    - {name: memory, mountPath: /memory}
    - {name: config, mountPath: /config}
    - {name: secret, mountPath: /secret}
    - {name: host, mountPath: /host}
    - {name: file, mountPath: /file}
`

// testModes: the modes of podctl's files do not depend on the umask. Only the owner can access the state directory, and
// outside of it there is no file that others may write to.
func testModes(t *testing.T, m *machine) {
	seen := map[string]string{}
	for _, umask := range []string{"000", "077"} {
		// The path of a socket must be short, and both directories have paths of the same length.
		dir, err := os.MkdirTemp("/tmp", "podctl-modes-") //nolint:usetesting // see above
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		manifest := write(t, strings.ReplaceAll(moded, "HOST", dir))
		call := func(args ...string) {
			t.Helper()
			words := append([]string{
				"-c", "umask " + umask + "; exec \"$@\"", "sh", m.bin, "--state-dir", dir + "/a/state",
				"--log-root", dir + "/b/logs", "--cgroup-root", m.cgroupRoot(), "-r", m.socket(),
			}, args...)
			if r := m.runWith(t, exec.CommandContext(t.Context(), "sh", words...)); r.code != 0 {
				t.Fatalf("podctl %v: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
			}
		}
		call("plan", "--save", dir+"/plan.json", manifest)
		call("apply", "--wait", "--timeout", "60s", manifest)
		call("doctor", "--bundle", dir+"/bundle.tar.gz")
		seen[umask] = modesBelow(t, dir)
		call("delete", "modes")
	}
	if seen["000"] != seen["077"] {
		t.Errorf("with the umask 000:\n%s\nwith 077:\n%s", seen["000"], seen["077"])
	}
	for _, want := range []string{
		"drwx------ a/state\n", "-rw------- plan.json\n", "-rw------- bundle.tar.gz\n", "checkpoint.json",
		"-rw------- a/state/events/", "drwxr-xr-x made\n", "-rw-r--r-- file\n",
	} {
		if !strings.Contains(seen["077"], want) {
			t.Errorf("%q is not in\n%s", want, seen["077"])
		}
	}
	for line := range strings.Lines(seen["000"]) {
		private := strings.Contains(line, " a/state/") || strings.HasPrefix(line, "L")
		if mode := strings.Fields(line)[0]; !private && (mode[len(mode)-2] == 'w' || mode[len(mode)-5] == 'w') {
			t.Errorf("others can write to %s", line)
		}
		if strings.HasSuffix(line, "checkpoint.json\n") && !strings.HasPrefix(line, "-rw------- ") {
			t.Errorf("other users can read %s", line)
		}
	}
}

// modesBelow returns modes and names. It replaces IDs and times.
func modesBelow(t *testing.T, dir string) string {
	t.Helper()
	varying := regexp.MustCompile(`[0-9a-f]{8,}|\.\.\d{4}_\d\d_\d\d_[0-9_.]+`)
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			lines = append(lines,
				fmt.Sprintf("%s %s\n", info.Mode(), varying.ReplaceAllString(strings.TrimPrefix(path, dir+"/"), "X")))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "")
}

// testListeners: podctl and its containerd listen only on the loopback address of the machine, and only the owner can
// access their sockets.
func testListeners(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", write(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: listens}\nspec:\n"+
		"  terminationGracePeriodSeconds: 1\n"+
		"  containers: [{name: app, image: 'registry.local/podctl/demo:1', args: [serve, --http, ':8080']}]\n"))
	forward := m.command(t.Context(), "port-forward", "listens", ":8080")
	out, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = forward.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = forward.Process.Kill(); _ = forward.Wait() })
	if n, readErr := out.Read(make([]byte, 1)); n != 1 {
		t.Fatalf("port-forward prints nothing: %v", readErr)
	}
	ours := m.processes(t)
	if len(ours) < 3 {
		t.Fatalf("only %v belong to podctl", ours)
	}
	found := map[string]bool{}
	for _, address := range listening(t, ours) {
		host, _, splitErr := net.SplitHostPort(address)
		if ip := net.ParseIP(host); splitErr != nil || !ip.IsLoopback() {
			t.Errorf("a process listens on %s", address)
		}
		found[host] = true
	}
	if !found["127.0.0.1"] {
		t.Error("the forwarded port is missing")
	}
	dir := filepath.Dir(m.socket())
	if info, statErr := os.Stat(dir); statErr != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v %v", dir, info, statErr)
	}
	sockets := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Dir(path) != dir || entry.Type() != fs.ModeSocket {
			return nil //nolint:nilerr // files that containers remove meanwhile are not sockets of the node
		}
		sockets++
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil || sockets != 2 {
		t.Errorf("%d sockets are in %s: %v", sockets, dir, err)
	}
	m.must(t, "delete", "listens")
}

// processes returns the process IDs of the node's containerd, its shims, and podctl on this machine.
func (m *machine) processes(t *testing.T) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if pid, convErr := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && convErr == nil &&
			bytes.Contains(text, []byte(m.state)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// listening returns the TCP addresses that processes listen on in their own network namespace.
func listening(t *testing.T, pids []int) []string {
	t.Helper()
	var addresses []string
	for _, pid := range pids {
		proc := fmt.Sprintf("/proc/%d", pid)
		links, err := filepath.Glob(proc + "/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		var inodes []string
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
				inodes = append(inodes, strings.Trim(target, "socket:[]"))
			}
		}
		for _, table := range []string{"/net/tcp", "/net/tcp6"} {
			text, err := os.ReadFile(proc + table)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if fields := strings.Fields(line); len(fields) > 9 && fields[3] == "0A" &&
					slices.Contains(inodes, fields[9]) {
					addresses = append(addresses, decodeAddress(t, fields[1]))
				}
			}
		}
	}
	return addresses
}

// decodeAddress parses an address in the notation of the kernel: words of four bytes in reverse byte order.
func decodeAddress(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	var ip net.IP
	for i := 0; i < len(host); i += 8 {
		word, err := strconv.ParseUint(host[i:i+8], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		ip = append(ip, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(ip.String(), strconv.FormatUint(n, 10))
}

// rssMax is the maximum memory of a call with an input of a gigabyte, in MB.
const rssMax = 128

// testBoundedInputs: a gigabyte of input from any source is refused with a clear message, with little memory, and long
// before it is read completely.
func testBoundedInputs(t *testing.T, m *machine) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for line := bytes.Repeat([]byte("# x\n"), 10_000); r.Context().Err() == nil; {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<30); err != nil {
		t.Fatal(err)
	}
	bomb := write(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: &x \""+strings.Repeat("x", 1<<20)+
		"\"\ndata:\n"+strings.Repeat("  k: *x\n", 1000))
	// On a busy machine, a command may end before its memory is read.
	measured := false
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"a header": {[]string{"image", "load", "-"}, "header field too long", 1},
		"a file":   {[]string{"apply", large}, "large.yaml: it is larger than 10485760 bytes", 1},
		"a device": {[]string{"plan", "/dev/zero"}, "/dev/zero: it is neither a file nor a pipe", 1},
		"a pipe":   {[]string{"plan", "-"}, "standard input: it is larger than", 1},
		"a URL":    {[]string{"plan", endless.URL}, "it is larger than 10485760 bytes", 1},
		"aliases":  {[]string{"plan", bomb}, "once its aliases are expanded", 5},
		"a snapshot": {
			[]string{"plan", "--snapshot", large, hello}, "large.yaml: it is larger than 33554432 bytes", 1,
		},
		"a snapshot's pipe": {[]string{"get", "--snapshot", "-"}, "-: it is larger than 33554432 bytes", 1},
		"a saved plan": {
			[]string{"apply", "--plan", large, hello}, "large.yaml: it is larger than 33554432 bytes", 1,
		},
		"a configuration":      {[]string{"get", "--config", large}, "large.yaml: it is larger than 65536 bytes", 1},
		"not an image archive": {[]string{"image", "load", large}, "", 1},
		"an archive of zeros":  {[]string{"image", "load", "-"}, "", 1},
	} {
		cmd := m.command(t.Context(), c.args...)
		zero, err := os.Open("/dev/zero")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = io.LimitReader(zero, 1<<30)
		if name == "a header" {
			cmd.Stdin = io.MultiReader(bytes.NewReader(hugeHeader(t)), cmd.Stdin)
		}
		r, peak := m.runWatched(t, cmd)
		if err := zero.Close(); err != nil {
			t.Error(err)
		}
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || len(r.stderr) > 1000 {
			t.Errorf("%s: exit code %d, %.1000s", name, r.code, r.stderr)
		}
		if peak > rssMax {
			t.Errorf("%s: %d MB of memory are used", name, peak)
		}
		measured = measured || peak > 0
	}
	if !measured {
		t.Error("the memory of no command could be measured")
	}
}

// runWatched runs a command and returns its peak memory in MB. It polls, because the value of wait(2) includes the
// memory of the parent process.
func (m *machine) runWatched(t *testing.T, cmd *exec.Cmd) (r result, peak int64) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the exit code is checked
	}()
	for {
		select {
		case <-done:
			return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, peak
		case <-time.After(time.Millisecond):
			peak = max(peak, memoryPeak(cmd.Process.Pid))
		}
	}
}

// memoryPeak returns the peak memory of a process in MB, or 0 if it has ended.
func memoryPeak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var kib int64
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(text, "%d", &kib); err != nil {
		return 0
	}
	return kib >> 10
}

// hugeHeader returns the beginning of an archive whose first header announces a gigabyte of further headers.
func hugeHeader(t *testing.T) []byte {
	t.Helper()
	var archive bytes.Buffer
	err := tar.NewWriter(&archive).WriteHeader(
		&tar.Header{Name: "x", Mode: 0o600, Size: 1 << 30, Format: tar.FormatUSTAR})
	if err != nil {
		t.Fatal(err)
	}
	header := archive.Bytes()[:512]
	header[156] = tar.TypeXHeader
	copy(header[148:156], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return header
}

// A pod whose program, probe and manifest try to move the cursor of the terminal.
const escaping = `apiVersion: v1
kind: Pod
metadata:
  name: escapes
  annotations: {note: "a\e[2Jb"}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: says
    image: registry.local/podctl/demo:1
    args: [write, /dev/termination-log, "\e[31mred\a\u009b1m\u202eturned"]
  - name: logs
    image: registry.local/podctl/demo:1
    args: [print, "\e[31mred\a"]
  - name: keeps
    image: registry.local/podctl/demo:1
    args: [sleep]
    livenessProbe: {exec: {command: [/demo, "\e[31mred"]}, failureThreshold: 3}
  - name: fails
    image: "registry.local/podctl/demo:1"
    command: ["/\e[31mred"]
`

// testEscapes: no output of a program, a runtime or a manifest reaches the terminal without escaping. Logs are an
// exception, because they belong to the program. JSON remains valid.
func testEscapes(t *testing.T, m *machine) {
	manifest := write(t, escaping)
	escape := regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f]|\x{9b}|\x{202e}`)
	for _, args := range [][]string{
		{"plan", manifest},
		{"apply", "--wait=started", "--timeout", "20s", manifest},
		{"plan", "escapes"},
		{"probe", "escapes"},
		{"get", "escapes"},
		{"get", "-o", "wide", "escapes"},
		{"get", "--containers", "escapes"},
		{"describe", "escapes"},
		{"events", "escapes"},
		{"exec", "escapes", "-c", "keeps", "--", "/\x1b[31mred"},
		{"top", "escapes"},
		{"image", "pull", "no.such.host/\x1b[31m:1"},
		{"plan", "-o", "json", "escapes"},
		{"probe", "-o", "json", "escapes"},
		{"get", "-o", "json", "escapes"},
		{"events", "-o", "json", "escapes"},
		{"snapshot", "escapes"},
	} {
		r := m.run(t, args...)
		if found := escape.FindString(r.stderr); found != "" {
			t.Errorf("podctl %q: %q in %q", args, found, r.stderr)
		}
		if slices.Contains(args, "json") || args[0] == "snapshot" {
			if !json.Valid([]byte(r.stdout)) {
				t.Errorf("podctl %q: no JSON: %q", args, r.stdout)
			}
			continue
		}
		if found := escape.FindString(r.stdout); found != "" {
			t.Errorf("podctl %q: %q in %q", args, found, r.stdout)
		}
	}
	waitFor(t, func() bool {
		return strings.Contains(m.must(t, "describe", "escapes").stdout, `\x1b[31mred\x07\x9b1m\u202eturned`)
	})
	waitFor(t, func() bool { return strings.Contains(m.must(t, "logs", "escapes", "logs").stdout, "\x1b[31mred\a") })
	m.must(t, "delete", "escapes")
}

// testForeignDirectories: commands refuse files and directories of another user in the places that podctl writes to.
func testForeignDirectories(t *testing.T, m *machine) {
	foreign := func() string {
		dir, err := os.MkdirTemp("/tmp", "podctl-foreign-") //nolint:usetesting // another user can create it there
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	state, logs, home := foreign(), foreign(), foreign()
	pod := write(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: foreign}\n"+
		"spec: {containers: [{name: a, image: 'registry.local/podctl/demo:1', args: [sleep]}]}\n")
	config := filepath.Join(home, "podctl", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("runtime-endpoint: /tmp/evil.sock\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(config, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"apply into a state directory": {
			[]string{"--state-dir", state, "-r", m.socket(), "apply", pod},
			"",
			"the state directory cannot be trusted: " + state + " belongs to user 65534",
		},
		"node up in a state directory": {
			[]string{"--state-dir", state, "node", "up", "--containerd", "/absent"},
			"",
			"the state directory cannot be trusted",
		},
		"apply into a log root": {
			[]string{"--state-dir", m.state, "--log-root", logs, "--cgroup-root", m.cgroupRoot(), "apply", pod},
			"",
			"the log directory cannot be trusted: " + logs + " belongs to user 65534",
		},
		"another user's configuration": {[]string{"get"}, "XDG_CONFIG_HOME=" + home, config + " belongs to user 65534"},
		"the same file, with --config": {[]string{"--config", config, "get"}, "", "/tmp/evil.sock"},
	} {
		cmd := exec.CommandContext(t.Context(), m.bin, c.args...)
		cmd.Env = append(os.Environ(), c.env)
		if r := m.runWith(t, cmd); r.code != 1 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	for _, dir := range []string{state, logs} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s contains %v (%v)", dir, entries, err)
		}
	}
	m.must(t, "delete", "foreign")
}
