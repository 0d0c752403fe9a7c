package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// call runs one command line without a runtime.
func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &Env{
		In: strings.NewReader(stdin), Out: &out, Err: &errs,
		Now:    func() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) },
		Getenv: func(string) string { return "" },
	}
	code = Main(t.Context(), env, append(args, "--state-dir", t.TempDir()))
	return code, out.String(), errs.String()
}

// walk calls a function for a command and all below it.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

// TestEveryCommandHasHelp: help is printed without a runtime; it says in a line
// and at length what the command does, with an example, and lists its exit codes.
// No flag is defined twice.
func TestEveryCommandHasHelp(t *testing.T) {
	count := 0
	walk(New(&Env{Getenv: func(string) string { return "" }}), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || !cmd.IsAvailableCommand() {
			return
		}
		count++
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		code, stdout, stderr := call(t, "", args...)
		if code != 0 || !strings.Contains(stdout, "Usage: "+cmd.CommandPath()) || stderr != "" {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		for _, part := range helpParts(cmd) {
			if part == "" || !strings.Contains(stdout, part) {
				t.Errorf("%s: help lacks a part (%q), see exitCodes and Example of other commands", cmd.CommandPath(), part)
			}
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: its example shows something else: %s", cmd.CommandPath(), cmd.Example)
		}
	})
	if count < 10 {
		t.Errorf("only %d commands were found", count)
	}
}

// helpParts is what the help of a command has to show; an empty one is missing.
func helpParts(cmd *cobra.Command) []string {
	long, codes, _ := strings.Cut(cmd.Long, "\n\nExit codes:\n  ")
	parts := []string{long, cmd.Example, "Examples:\n", "Exit codes:\n"}
	if cmd.Short == "" || codes == "" {
		parts = append(parts, "")
	}
	return parts
}

func TestUsageErrors(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown command":       {"nonsense"},
		"an unknown flag":          {"plan", "--nonsense"},
		"apply without a manifest": {"apply"},
		"apply --all with one":     {"apply", "--all", "pod.yaml"},
		"a wrong word for a flag":  {"plan", "-o", "xml", "pod.yaml"},
		"delete without a pod":     {"delete"},
		"version with arguments":   {"version", "x"},
		"export without a pod":     {"export"},
		"a time gone by":           {"get", "--timeout", "-1s"},
		"a wait that ended before": {"get", "--lock-timeout", "-1ns"},
		"no time for an answer":    {"get", "--request-timeout", "0"},
		"a wrong policy":           {"plan", "--pull", "sometimes", "pod.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := call(t, "", args...)
			if code != exitError || !strings.HasPrefix(stderr, "podctl: ") || !strings.Contains(stderr, "--help") || strings.Contains(stderr, ", \n") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	good := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeName: node-1, containers: [{name: a, image: b}]}\n"
	code, stdout, _ := call(t, good, "validate", "-")
	if code != 0 || !strings.Contains(stdout, "pod default/web is valid") || !strings.Contains(stdout, "no effect: -:4:8: spec.nodeName") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	code, stdout, _ = call(t, strings.Replace(good, "image: b", "imag: b", 1), "validate", "-o", "json", "-")
	if code != exitRefused || !strings.Contains(stdout, `"path": "spec.containers[0].imag"`) || !strings.Contains(stdout, `"kind": "Problems"`) {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// TestNamespaceOfAManifest: who names another namespace than the manifest means another pod.
func TestNamespaceOfAManifest(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: a, image: b}]}\n"
	for namespace, refused := range map[string]bool{"shop": false, "other": true} {
		code, _, stderr := call(t, pod, "delete", "--runtime-endpoint", "unix:///nowhere.sock", "-n", namespace, "-")
		if said := strings.Contains(stderr, "shop/web of the manifest is not in the namespace"); code != exitError || said != refused {
			t.Errorf("-n %s: exit code %d\n%s", namespace, code, stderr)
		}
	}
}

// TestSilentDocuments: what nobody writes to is waited for as long as --timeout says.
func TestSilentDocuments(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pod.json")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", pipe}, {"plan", "--snapshot", pipe}} {
		code, _, stderr := call(t, "", append(args, "--timeout", "10ms")...)
		if code != exitError || !strings.Contains(stderr, pipe+": gave up after 10ms (--timeout)") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestControlCharactersAreShown(t *testing.T) {
	_, _, stderr := call(t, "", "plan", "/absent/\x1b[31m.yaml")
	if strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, `\x1b[31m`) {
		t.Errorf("%q", stderr)
	}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":    {nil, 0},
		"an error":   {errors.New("x"), 1},
		"refused":    {fmt.Errorf("x: %w", &podspec.RefusedError{}), 5},
		"blocked":    {&runtime.BlockedError{}, 3},
		"timed out":  {&runtime.TimeoutError{}, 3},
		"superseded": {&runtime.SupersededError{}, 3},
		"coded":      {withCode(exitProbeFailed), 4},
	} {
		if got := exitCode(t.Context(), c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := exitCode(ctx, context.Canceled); got != exitInterrupted {
		t.Errorf("interrupted: %d", got)
	}
	if worst(exitNotYet, exitRefused) != exitRefused || worst(exitError, exitNotYet) != exitError {
		t.Error("the worst code does not win")
	}
}

func TestPlanView(t *testing.T) {
	until := time.Date(2026, 5, 4, 12, 4, 40, 0, time.Local)
	p := &plan.Plan{
		Pod: model.PodRef{Namespace: "default", Name: "web"}, Runtime: plan.RuntimeRef{Name: "containerd", Version: "v2.4.2"}, SandboxID: "7b2c1e0a99bbcccc",
		Steps: []plan.Step{
			{ID: "pull-app", Kind: plan.PullImage, Container: "app", Image: "registry.local/web:1.5", Message: "absent"},
			{ID: "check-app", Kind: plan.CheckContainer, Container: "app"},
			{
				ID: "stop", Kind: plan.StopContainer, Container: "app", ContainerID: "9d0e4c77aaaabbbb", GracePeriodSeconds: new(int64(30)), PreStop: "exec",
				Changes: []diff.Change{{Path: "image", Before: "a:1.4", After: "a:1.5"}},
			},
			{
				ID: "start", Kind: plan.StartContainer, Container: "app", Attempt: 3, ContainerType: podspec.Regular,
				Changes: []diff.Change{{Path: "image", Before: "a:1.4", After: "a:1.5"}},
			},
			{ID: "update", Kind: plan.UpdateContainer, Container: "cache", Changes: []diff.Change{{Path: "limits.memory", Before: "64Mi", After: "128Mi"}}},
			{ID: "start-m", Kind: plan.StartContainer, Container: "metrics", Message: "not created yet", ContainerType: podspec.Regular},
		},
		Holds: []plan.Hold{{Container: "worker", Reason: model.CrashLoopBackOff, Until: &until, Message: "back-off 40s, exit code 1"}},
		Keeps: []plan.Keep{
			{Message: "10.88.0.7"},
			{Container: "migrate", ContainerType: podspec.Init, Message: "done, exited 0 3m ago"},
		},
		Later:   []string{"something (when it is time)"},
		Summary: plan.Summary{Start: 1, Replace: 1, Update: 1, Hold: 1, Keep: 2},
	}
	want := `Pod default/web · containerd 2.4.2 · sandbox 7b2c1e0a99bb, 10.88.0.7

  = init migrate  done, exited 0 3m ago
-/+ app           replace                # image: a:1.4 -> a:1.5
      pull  registry.local/web:1.5  # absent
      stop  9d0e4c77aaaa  grace 30s, preStop exec
      start attempt 3
  ~ cache         update in place        # limits.memory: 64Mi -> 128Mi
  + metrics       start                  # not created yet
  … worker        held until 12:04:40    # CrashLoopBackOff 40s, exit code 1

later: something (when it is time)

Plan: 1 to replace, 1 to start, 1 to update, 1 held, 2 unchanged.
`
	var b bytes.Buffer
	if err := (&planView{w: &b}).write(p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPodView(t *testing.T) {
	started := metav1.NewTime(time.Date(2026, 5, 4, 11, 58, 0, 0, time.UTC))
	pod := func(status v1.PodStatus) *v1.Pod {
		status.StartTime = &started
		p := &v1.Pod{Status: status}
		p.Name = "web"
		p.Spec.Containers = []v1.Container{{Name: "a"}, {Name: "b"}}
		return p
	}
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	done := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed"}}
	cases := map[string]struct {
		status v1.PodStatus
		want   string
	}{
		"running":   {v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{State: running, Ready: true}, {State: running, Ready: true}}}, "web 2/2 Running 0 2m"},
		"crashing":  {v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{State: waiting, RestartCount: 4}, {State: running, Ready: true}}}, "web 1/2 CrashLoopBackOff 4 2m"},
		"completed": {v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{{State: done}, {State: done}}}, "web 0/2 Completed 0 2m"},
	}
	v := &podView{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	check := func(name string, p *v1.Pod, want string) {
		t.Helper()
		if got := strings.Join(v.rows([]*v1.Pod{p})[0], " "); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, c := range cases {
		check(name, pod(c.status), c.want)
	}
	going := pod(cases["running"].status)
	going.DeletionTimestamp = &started
	check("being deleted", going, "web 2/2 Terminating 0 2m")
}

func TestTableHasNoTrailingBlanks(t *testing.T) {
	var b bytes.Buffer
	if err := table(&b, []string{"A", "LONG"}, [][]string{{"value", "x"}, {"y\x1b", ""}}); err != nil {
		t.Fatal(err)
	}
	want := "A       LONG\nvalue   x\ny\\x1b\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestRenderCRI: the messages hold no secret, and name what only a runtime can
// tell.
func TestRenderCRI(t *testing.T) {
	manifest := `apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {key: hunter2}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  securityContext: {runAsNonRoot: true}
  hostUsers: false
  containers:
  - name: app
    image: i:1
    env:
    - {name: S, valueFrom: {secretKeyRef: {name: s, key: key}}}
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: F, valueFrom: {fileKeyRef: {volumeName: v, path: f, key: K}}}
    volumeMounts: [{name: v, mountPath: /v, subPath: x}]
  volumes: [{name: v, emptyDir: {}}]
`
	code, out, errs := call(t, manifest, "render", "--cri", "-o", "json", "-")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var doc struct {
		Kind       string
		Sandbox    map[string]any
		Containers []struct {
			Image struct{ Image string }
			Envs  []struct {
				Key   string
				Value []byte
			}
			Mounts []struct {
				ContainerPath string `json:"container_path"`
				HostPath      string `json:"host_path"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, e := range doc.Containers[0].Envs {
		env[e.Key] = string(e.Value)
	}
	if env["IP"] != "$SANDBOX_IP" || env["F"] != "$FILE_VALUE" || !strings.HasPrefix(env["S"], podspec.SecretDigestPrefix) {
		t.Errorf("environment %v", env)
	}
	if doc.Kind != "CRIMessages" || doc.Containers[0].Image.Image != "$IMAGE_ID" || doc.Sandbox["metadata"] == nil {
		t.Errorf("%s", out)
	}
	if m := doc.Containers[0].Mounts[0]; m.ContainerPath != "/v" || !strings.HasSuffix(m.HostPath, "/volume-subpaths/v/app/0") {
		t.Errorf("mount %+v", m)
	}
	if strings.Contains(out, "hunter2") || strings.Contains(out, "aHVudGVyMg") {
		t.Error("the messages hold the secret")
	}
}

// TestProgressIsColouredAndSafe: podctl's own colours reach a terminal, those of others
// do not.
func TestProgressIsColouredAndSafe(t *testing.T) {
	var out strings.Builder
	p := &progress{w: &out, paint: painter{on: true}}
	step := &plan.Step{Kind: plan.PullImage, Image: "evil\x1b[2J"}
	p.report(runtime.Event{Kind: runtime.StepDone, Step: step, Took: time.Second, Detail: "id\x1b]0;"})
	if text := out.String(); strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x1b]0;") || strings.Contains(text, `\x1b[2m`) || !strings.Contains(text, "\x1b[2m") {
		t.Errorf("%q", text)
	}
}

// TestDevicesAreNotReplaced: a file is replaced as a whole, a device is written to.
func TestDevicesAreNotReplaced(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, err := os.ReadFile(pipe)
		read <- fmt.Sprint(string(text), err)
	}()
	g := &globals{env: &Env{}}
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, "plan")
		return err
	}
	if err := g.intoFile(pipe, write); err != nil {
		t.Fatal(err)
	}
	if text := <-read; text != "plan<nil>" {
		t.Errorf("through the pipe came %q", text)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe is a %v now: %v", info.Mode(), err)
	}
}

// TestFilesAreForTheirOwnerAlone: what is written where the caller says is readable for
// nobody else, replaces what lay there, and never lands behind another user's link.
func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a link away")
	}
	const nobody = 65534
	profile := func(path string) error {
		p := &profiling{cpu: path}
		_, err := p.begin(t.Context(), "podctl", func(string) string { return "" })
		return errors.Join(err, p.end())
	}
	for name, write := range map[string]func(string) error{
		"plan --save": func(path string) error { return savePlans(path, nil) },
		"image save": func(path string) error {
			return (&globals{env: &Env{}}).intoFile(path, func(w io.Writer) error {
				_, err := io.WriteString(w, "archive")
				return err
			})
		},
		"doctor --bundle": func(path string) error {
			g := &globals{env: &Env{Getenv: func(string) string { return "" }}, stateDir: t.TempDir(), logRoot: t.TempDir()}
			return g.writeBundle(t.Context(), path, nil, &doctorDocument{})
		},
		"--cpuprofile": profile,
	} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		err := errors.Join(os.Chmod(dir, 0o1777), os.Mkdir(at("dir"), 0o700), os.WriteFile(at("victim"), []byte("victim"), 0o600),
			os.Symlink(at("victim"), at("link")), os.Lchown(at("link"), nobody, nobody), os.Symlink(at("dir"), at("way")), os.Lchown(at("way"), nobody, nobody),
			os.WriteFile(at("old"), []byte("his"), 0o600), os.Chmod(at("old"), 0o666), os.Chown(at("old"), nobody, nobody))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"new", "old"} {
			if err = write(at(file)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			info, statErr := os.Stat(at(file))
			if statErr != nil || info.Mode() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Errorf("%s: the %s file is %+v, %v", name, file, info, statErr)
			}
		}
		for _, file := range []string{"link", "way/file"} {
			if err = write(at(file)); err == nil || !strings.Contains(err.Error(), "of user 65534") {
				t.Errorf("%s into %s: %v", name, file, err)
			}
		}
		if text, err := os.ReadFile(at("victim")); string(text) != "victim" || err != nil {
			t.Errorf("%s: the file behind the link holds %q, %v", name, text, err)
		}
		if entries, err := os.ReadDir(at("dir")); len(entries) > 0 || err != nil {
			t.Errorf("%s: behind the link lies %v, %v", name, entries, err)
		}
	}
}

// TestDirectoryTakenForAName: what looks like a pod's name is one; the error says how a
// directory of that name is meant.
func TestDirectoryTakenForAName(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("stack", 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "", "plan", "stack")
	if code != 1 || !strings.Contains(stderr, "no pod default/stack") || !strings.Contains(stderr, "write ./stack") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, _, stderr := call(t, "", "plan", "absent"); strings.Contains(stderr, "./") {
		t.Errorf("nothing of that name is there: %s", stderr)
	}
}

// TestExportTakesOnePod: of a manifest of two none is printed, as a kubelet would miss the
// other.
func TestExportTakesOnePod(t *testing.T) {
	one := `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: b}]}}`
	code, stdout, stderr := call(t, one+"\n---\n"+strings.Replace(one, "web", "second", 1), "export", "-")
	if code != exitError || stdout != "" || !strings.Contains(stderr, "holds 2 pods; name one") {
		t.Errorf("two pods: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, _ := call(t, one, "export", "-"); code != exitOK || !strings.Contains(stdout, "name: web") {
		t.Errorf("one pod: exit code %d\n%s", code, stdout)
	}
}

// TestNodeDownNamesWhatItCannotRead: nobody can say whether a pod whose journal cannot be
// read is the node's.
func TestNodeDownNamesWhatItCannotRead(t *testing.T) {
	dir := applied(t, completionPods)
	journals, err := filepath.Glob(filepath.Join(dir, "pods", "*", "journal.json"))
	if err != nil || len(journals) < 2 {
		t.Fatal(journals, err)
	}
	if err := os.WriteFile(journals[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	env := &Env{In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, Getenv: func(string) string { return "" }}
	if code := Main(t.Context(), env, []string{"--state-dir", dir, "node", "down"}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(errs.String(), journals[0]) || strings.Contains(errs.String(), journals[1]) {
		t.Errorf("it says %q", errs.String())
	}
}

// TestLibrariesAreQuiet: what a library logs as an error reaches no terminal.
func TestLibrariesAreQuiet(t *testing.T) {
	quietLibraries()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr //nolint:forbidigo // libraries write to it
	os.Stderr = file    //nolint:forbidigo // as above
	klog.ErrorS(errors.New("EOF"), "Copying stdin failed")
	klog.Flush()
	os.Stderr = stderr //nolint:forbidigo // as above
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
		t.Errorf("%q %v", text, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}
