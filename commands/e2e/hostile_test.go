//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hostile is a running pod with a state directory of its own that the test damages.
type hostile struct {
	*machine
	t *testing.T
	// dir is the state directory on a small disk. logs is on another one.
	dir, logs string
	// path is the applied manifest, changed a changed copy.
	path, changed string
	// uid is the UID of the pod, ids are its containers. If uid is empty, the containers may change.
	uid string
	ids map[string]string
}

const served = `apiVersion: v1
kind: Pod
metadata: {name: hostile}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: a
    image: registry.local/podctl/demo:1
    args: [serve]
    livenessProbe: {httpGet: {path: /livez, port: 8080}, periodSeconds: 1}
  - {name: b, image: "registry.local/podctl/demo:1", args: [sleep]}
`

// testHostile: for each problem with the disk, the state directory or its contents, each command prints a clear
// message, and running containers keep running.
func testHostile(t *testing.T, m *machine) {
	h := &hostile{machine: m, t: t, path: write(t, served)}
	h.changed = edited(t, h.path, "[sleep]", "[sleep, \"100\"]")
	for _, dir := range []*string{&h.dir, &h.logs} {
		*dir = t.TempDir()
		if err := unix.Mount("none", *dir, "tmpfs", 0, "size=512k,mode=0700"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(*dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	h.expect(0, "is ready", "apply", "--wait", h.path)
	pods, err := os.ReadDir(filepath.Join(h.dir, "pods"))
	if err != nil || len(pods) != 1 {
		t.Fatal(pods, err)
	}
	h.uid, h.ids = pods[0].Name(), m.ids(t, "hostile")
	h.readOnly()
	h.untrusted()
	h.obstructed()
	h.damaged()
	h.fullDisk()
}

func (h *hostile) run(args ...string) result {
	h.t.Helper()
	return h.machine.run(h.t,
		append([]string{"--state-dir", h.dir, "--log-root", h.logs, "-r", h.socket()}, args...)...)
}

// expect runs a command and checks its exit code and its output. It also checks that the containers of the pod are
// unchanged.
func (h *hostile) expect(code int, wantMessage string, args ...string) {
	h.t.Helper()
	r := h.run(args...)
	if r.code != code || !strings.Contains(r.stdout+r.stderr, wantMessage) {
		h.t.Errorf("%v: exit code %d, want %d; want %q in:\n%s%s", args, r.code, code, wantMessage, r.stdout, r.stderr)
	}
	for _, noise := range []string{"rpc error", "goroutine", "%!"} {
		if strings.Contains(r.stderr, noise) {
			h.t.Errorf("%v: noise in the message:\n%s", args, r.stderr)
		}
	}
	if h.uid != "" && !sameMap(h.ids, h.machine.ids(h.t, "hostile")) {
		h.t.Errorf("%v: the containers have changed", args)
	}
}

// looks runs the commands that change nothing. They work despite the problem.
func (h *hostile) looks() {
	h.t.Helper()
	h.expect(0, "No changes", "plan", h.path)
	h.expect(0, "Running", "get", "hostile")
	h.expect(0, "Running", "describe", "hostile")
	h.expect(0, "sleeping", "logs", "hostile", "b")
}

// changes runs the commands that change something. They report the problem.
func (h *hostile) changes(wantMessage string) {
	h.t.Helper()
	for _, args := range [][]string{{"apply", h.changed}, {"restart", "hostile", "b"}, {"delete", "hostile"}} {
		h.expect(1, wantMessage, args...)
	}
}

func (h *hostile) readOnly() {
	h.t.Helper()
	h.remount(unix.MS_RDONLY)
	h.looks()
	h.changes("pod default/hostile: opening the lock: open " + h.dir)
	h.changes("read-only file system")
	h.expect(1, "Success", "probe", "hostile")
	h.expect(1, "recording the probe results", "probe", "hostile")
	h.remount(0)
}

func (h *hostile) remount(flags uintptr) {
	h.t.Helper()
	if err := unix.Mount("none", h.dir, "tmpfs", unix.MS_REMOUNT|flags, ""); err != nil {
		h.t.Fatal(err)
	}
}

// untrusted: other users can write to the state directory, or own it.
func (h *hostile) untrusted() {
	h.t.Helper()
	for wantMessage, bad := range map[string]func(back bool) error{
		"can be written by others; check its content": func(back bool) error {
			return os.Chmod(h.dir, map[bool]os.FileMode{false: 0o777, true: 0o700}[back])
		},
		"belongs to user 1234; remove it": func(back bool) error {
			return os.Chown(h.dir, map[bool]int{false: 1234}[back], 0)
		},
	} {
		h.must(bad(false))
		h.changes(wantMessage)
		for _, command := range []string{"get", "describe", "logs", "probe"} {
			h.expect(1, wantMessage, command, "hostile")
		}
		h.expect(1, wantMessage, "plan", h.path)
		h.must(bad(true))
	}
	file := filepath.Join(h.t.TempDir(), "file")
	h.must(os.WriteFile(file, nil, 0o600))
	h.expect(1, "is not a directory: remove it", "--state-dir", file, "apply", h.path)
}

func (h *hostile) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// obstructed: another file exists in the place of podctl's files.
func (h *hostile) obstructed() {
	h.t.Helper()
	locks := filepath.Join(h.dir, "locks")
	h.must(os.RemoveAll(locks))
	h.must(os.WriteFile(locks, nil, 0o600))
	h.looks()
	h.changes("creating the lock: open " + locks + ": not a directory")
	h.must(os.Remove(locks))
	lock := filepath.Join(locks, h.uid+".lock")
	h.must(os.MkdirAll(lock, 0o700))
	h.changes("opening the lock: open " + lock + ": is a directory")
	h.must(os.Remove(lock))
	h.must(os.WriteFile(lock, bytes.Repeat([]byte("\x1b[2J\x00"), 100), 0o600))
	h.expect(0, "unchanged", "apply", h.path)
	events := filepath.Join(h.dir, "events")
	h.must(os.RemoveAll(events))
	h.must(os.WriteFile(events, nil, 0o600))
	h.looks()
	h.expect(0, "unchanged", "apply", h.path)
	h.must(os.Remove(events))
}

// damaged: the checkpoint is truncated, invalid, from a newer podctl, or not a file.
func (h *hostile) damaged() {
	h.t.Helper()
	checkpoint := filepath.Join(h.dir, "pods", h.uid, "checkpoint.json")
	good, err := os.ReadFile(checkpoint)
	h.must(err)
	for wantMessage, text := range map[string][]byte{
		"is truncated: unexpected end of JSON input; remove the file": good[:len(good)/2],
		"it is damaged: line 1: it is not valid JSON":                 bytes.Repeat([]byte{0xff, 0}, 500),
		"it was written by a newer podctl (its version is 7": bytes.Replace(good, []byte(`"version":1`),
			[]byte(`"version":7`), 1),
	} {
		h.must(os.WriteFile(checkpoint, text, 0o600))
		h.unusable(wantMessage)
	}
	h.must(os.Remove(checkpoint))
	h.must(os.Mkdir(checkpoint, 0o700))
	h.unusable("it is damaged: it is not a regular file")
	h.must(os.Remove(checkpoint))
	h.expect(0, "No changes", "plan", h.path)
	h.must(os.WriteFile(checkpoint, good, 0o600))
}

// unusable: commands that need the checkpoint report its problem. Other commands show the state of the runtime.
func (h *hostile) unusable(wantMessage string) {
	h.t.Helper()
	for _, args := range [][]string{
		{"apply", h.path},
		{"apply", h.changed},
		{"plan", h.path},
		{"delete", "-f", h.path},
		{"delete", "hostile"},
		{"probe", "hostile"},
	} {
		h.expect(1, wantMessage, args...)
	}
	h.expect(0, "podctl (no checkpoint)", "get", "hostile")
	h.expect(1, "use the manifest instead of the name", "restart", "hostile")
	h.expect(0, "Running", "get", h.path)
	h.expect(0, "hostile", "get")
	h.expect(0, wantMessage, "get")
}

// fullDisk: neither state nor logs can be written. The pod can still be deleted.
func (h *hostile) fullDisk() {
	h.t.Helper()
	for _, dir := range []string{h.dir, h.logs} {
		h.fill(dir)
	}
	h.looks()
	h.expect(0, "unchanged", "apply", h.path)
	for _, args := range [][]string{{"apply", h.changed}, {"restart", "hostile", "b"}} {
		h.expect(1, "pod default/hostile: writing the checkpoint", args...)
		h.expect(1, "checkpoint.json: no space left on device; the previous one is kept", args...)
	}
	h.expect(1, "Success", "probe", "hostile")
	h.uid = ""
	h.expect(0, "pod default/hostile deleted", "delete", "hostile")
	if left := h.records(h.t, "hostile"); len(left) > 0 {
		h.t.Errorf("containers are left: %v", left)
	}
	if left, err := filepath.Glob(filepath.Join(h.dir, "pods", "*")); err != nil || len(left) > 0 {
		h.t.Errorf("left: %v %v", left, err)
	}
}

// fill writes until the disk is full to the last byte.
func (h *hostile) fill(dir string) {
	h.t.Helper()
	f, err := os.Create(filepath.Join(dir, "fill"))
	h.must(err)
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	h.must(f.Close())
}
