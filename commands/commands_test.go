package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec/digest"
)

// TestEveryCommandHasHelp checks that each command prints its help without a runtime. The help has a short and a long
// text, an example and the exit codes, and no flag is defined twice.
func TestEveryCommandHasHelp(t *testing.T) {
	count := 0
	commandstest.Walk(New(&Env{Getenv: func(string) string { return "" }}), func(cmd *cobra.Command) {
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
				t.Errorf("%s: help lacks a part (%q), see exitCodes and Example of other commands", cmd.CommandPath(),
					part)
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

// helpParts returns the required parts of a command's help. An empty part is missing.
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
		"an unknown command":          {"nonsense"},
		"an unknown flag":             {"plan", "--nonsense"},
		"apply without a manifest":    {"apply"},
		"apply --all with a manifest": {"apply", "--all", "pod.yaml"},
		"an invalid value of a flag":  {"plan", "-o", "xml", "pod.yaml"},
		"delete without a pod":        {"delete"},
		"version with arguments":      {"version", "x"},
		"export without a pod":        {"export"},
		"why without a pod":           {"why"},
		"why with two containers":     {"why", "web", "a", "b"},
		"explain without a field":     {"explain"},
		"undo without a workload":     {"rollout", "undo"},
		"restart without a workload":  {"rollout", "restart"},
		"a negative time":             {"get", "--timeout", "-1s"},
		"a negative lock timeout":     {"get", "--lock-timeout", "-1ns"},
		"a request timeout of 0":      {"get", "--request-timeout", "0"},
		"a wrong policy":              {"plan", "--pull", "sometimes", "pod.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := call(t, "", args...)
			if code != exit.Error || !strings.HasPrefix(stderr, "podctl: ") || !strings.Contains(stderr, "--help") ||
				strings.Contains(stderr, ", \n") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	good := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n" +
		"spec: {nodeName: node-1, containers: [{name: a, image: b}]}\n"
	code, stdout, _ := call(t, good, "validate", "-")
	if code != 0 || !strings.Contains(stdout, "pod default/web is valid") ||
		!strings.Contains(stdout, "no effect: -:4:8: spec.nodeName") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	code, stdout, _ = call(t, strings.Replace(good, "image: b", "imag: b", 1), "validate", "-o", "json", "-")
	if code != exit.Refused || !strings.Contains(stdout, `"path": "spec.containers[0].imag"`) ||
		!strings.Contains(stdout, `"kind": "Problems"`) {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// TestValidateAService checks that a Service is valid even if no pod names it.
func TestValidateAService(t *testing.T) {
	code, stdout, _ := call(t, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"+
		"spec: {selector: {app: web}, ports: [{port: 80}]}\n", "validate", "-")
	if code != 0 || stdout != "service default/web is valid\n" {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// TestManifestsWithoutPods checks that validate refuses what apply refuses: manifests with only skipped objects. Render
// refuses workloads, whose pods it cannot show.
func TestManifestsWithoutPods(t *testing.T) {
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n" +
		"  selector: {matchLabels: {a: b}}\n" +
		"  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}\n"
	for _, c := range []struct {
		text, want string
		code       int
		args       []string
	}{
		{account, "use --skip-unknown to accept it", exit.Refused, []string{"validate", "-"}},
		{account, "contains nothing to apply", 0, []string{"validate", "--skip-unknown", "-"}},
		{deployment, "deployment default/web is valid", 0, []string{"validate", "-"}},
		{deployment, "render takes pods only: `podctl plan` shows the pods of deployment default/web", exit.Refused, []string{"render", "-"}},
		{deployment, "name an applied workload as deployment/NAME", exit.Refused, []string{"get", "-"}},
	} {
		code, out, errs := call(t, c.text, c.args...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%v: exit code %d\n%s%s", c.args, code, out, errs)
		}
	}
}

// TestValidateNotesKubeletRejections checks that a pod is valid, with a note, if podctl runs it and a kubelet would
// reject it.
func TestValidateNotesKubeletRejections(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  dnsPolicy: ClusterFirst\n" +
		"  nodeSelector: {disk: ssd}\n" +
		"  securityContext: {sysctls: [{name: net.core.somaxconn, value: '1'}]}\n" +
		"  containers: [{name: a, image: b, resources: {requests: {cpu: 100000}}}]\n"
	code, stdout, _ := call(t, text, "validate", "-")
	for _, want := range []string{
		"no effect: -:5:3: spec.dnsPolicy: podctl has no cluster DNS", "is valid",
		"note: pod default/web: spec.securityContext.sysctls[0]: a kubelet would refuse the pod",
		`forbidden sysctl: "net.core.somaxconn" not allowlisted`,
		"(OutOfcpu)", "unless its node has the label disk=ssd (NodeAffinity)",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want %q\n%s", code, want, stdout)
		}
	}
	_, stdout, _ = call(t, text, "validate", "-o", "json", "-")
	if !strings.Contains(stdout, `"notes": [`) || !strings.Contains(stdout, "(OutOfcpu)") {
		t.Errorf("%s", stdout)
	}
}

// TestNamespaceOfAManifest checks that --namespace is refused if it differs from the namespace of the manifest.
func TestNamespaceOfAManifest(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {containers: [{name: a, image: b}]}\n"
	for namespace, refused := range map[string]bool{"shop": false, "other": true} {
		code, _, stderr := call(t, pod, "delete", "--runtime-endpoint", "unix:///nowhere.sock", "-n", namespace, "-")
		if printed := strings.Contains(stderr, "shop/web in the manifest is not in the namespace"); code != exit.Error ||
			printed != refused {
			t.Errorf("-n %s: exit code %d\n%s", namespace, code, stderr)
		}
	}
}

// TestPipeWithoutWriterTimesOut checks that reading a pipe without a writer ends with --timeout.
func TestPipeWithoutWriterTimesOut(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pod.json")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", pipe}, {"plan", "--snapshot", pipe}} {
		code, _, stderr := call(t, "", append(args, "--timeout", "10ms")...)
		if code != exit.Error || !strings.Contains(stderr, pipe+": gave up after 10ms (--timeout)") {
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

// TestRenderCRI checks that the messages hold no Secret, and have placeholders for values that only a runtime knows.
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
	if env["IP"] != "$SANDBOX_IP" || env["F"] != "$FILE_VALUE" || !strings.HasPrefix(env["S"], digest.SecretPrefix) {
		t.Errorf("environment %v", env)
	}
	if doc.Kind != "CRIMessages" || doc.Containers[0].Image.Image != "$IMAGE_ID" || doc.Sandbox["metadata"] == nil {
		t.Errorf("%s", out)
	}
	if m := doc.Containers[0].Mounts[0]; m.ContainerPath != "/v" ||
		!strings.HasSuffix(m.HostPath, "/volume-subpaths/v/app/0") {
		t.Errorf("mount %+v", m)
	}
	if strings.Contains(out, "hunter2") || strings.Contains(out, "aHVudGVyMg") {
		t.Error("the messages contain the secret")
	}
}

// TestOutputFilesAreOwnerReadable checks the files that commands write to a path from the command line. They are
// readable only for their owner, replace existing files, and are never written through a link of another user.
func TestOutputFilesAreOwnerReadable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a link")
	}
	const foreignUID = 65534
	l := newLab(t)
	run := func(args ...string) error {
		if code, _, stderr := l.Call(args...); code != exit.OK {
			return errors.New(stderr)
		}
		return nil
	}
	for name, write := range map[string]func(string) error{
		"plan --save": func(path string) error { return run("plan", "--save", path) },
		"image save": func(path string) error {
			return session.New(&Env{}).IO.Into(path, func(w io.Writer) error {
				_, err := io.WriteString(w, "archive")
				return err
			})
		},
		"doctor --bundle": func(path string) error {
			sess := session.New(&Env{Getenv: func(string) string { return "" }})
			sess.Flags.StateDir, sess.Flags.LogRoot = t.TempDir(), t.TempDir()
			return writeBundle(t.Context(), sess, path, nil, &doctorDocument{})
		},
		"--cpuprofile": func(path string) error { return run("version", "--client", "--cpuprofile", path) },
	} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		err := errors.Join(
			os.Chmod(dir, 0o1777),
			os.Mkdir(at("dir"), 0o700),
			os.WriteFile(at("victim"), []byte("victim"), 0o600),
			os.Symlink(at("victim"), at("link")), os.Lchown(at("link"), foreignUID, foreignUID),
			os.Symlink(at("dir"), at("way")), os.Lchown(at("way"), foreignUID, foreignUID),
			os.WriteFile(at("old"), []byte("his"), 0o600), os.Chmod(at("old"), 0o666),
			os.Chown(at("old"), foreignUID, foreignUID))
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
			t.Errorf("%s: the target of the link contains %q, %v", name, text, err)
		}
		if entries, err := os.ReadDir(at("dir")); len(entries) > 0 || err != nil {
			t.Errorf("%s: the target of the link has %v, %v", name, entries, err)
		}
	}
}

// TestDirectoryNameAsPodName checks that an argument without a path is the name of a pod. If a directory has that name,
// the error explains how to name it.
func TestDirectoryNameAsPodName(t *testing.T) {
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

// TestExportRefusesSeveralPods checks that export refuses a manifest of two pods, because a kubelet would ignore the
// second one.
func TestExportRefusesSeveralPods(t *testing.T) {
	one := `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: b}]}}`
	code, stdout, stderr := call(t, one+"\n---\n"+strings.Replace(one, "web", "second", 1), "export", "-")
	if code != exit.Error || stdout != "" || !strings.Contains(stderr, "contains 2 pods; name one of them") {
		t.Errorf("two pods: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, one, "export", "-")
	if code != exit.OK || !strings.Contains(stdout, "name: web") || !strings.Contains(stderr, "removed or renamed") {
		t.Errorf("one pod: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, strings.Replace(one, "spec: {", "spec: {runtimeClassName: kata, ", 1), "export", "-")
	if code != exit.Refused || stdout != "" ||
		!strings.Contains(stderr, "pod default/web is not exported: spec.runtimeClassName: ") {
		t.Errorf("a manifest at which a kubelet panics: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestPodsThatNeedMounts checks which pods break if a kubelet binds its root directory on itself.
func TestPodsThatNeedMounts(t *testing.T) {
	for text, want := range map[string]bool{
		"volumes: [{name: v, emptyDir: {}}]":                                                          false,
		"volumes: [{name: v, hostPath: {path: /a}}]":                                                  false,
		"volumes: [{name: v, emptyDir: {medium: Memory}}]":                                            true,
		"volumes: [{name: v, downwardAPI: {}}]":                                                       true,
		"containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /v, subPath: a}]}]":     true,
		"containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /v, subPathExpr: a}]}]": true,
		"containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /v}]}]":                 false,
	} {
		pod := &v1.Pod{}
		if err := yaml.Unmarshal([]byte("spec: {"+text+"}"), pod); err != nil {
			t.Fatal(err)
		}
		if got := needsMounts(pod); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestNodeDownReportsUnreadableCheckpoints checks that node down reports unreadable checkpoints, because their pods may
// belong to the node.
func TestNodeDownReportsUnreadableCheckpoints(t *testing.T) {
	dir := commandstest.Applied(t, commandstest.Pods)
	checkpoints, err := filepath.Glob(filepath.Join(dir, "pods", "*", "checkpoint.json"))
	if err != nil || len(checkpoints) < 2 {
		t.Fatal(checkpoints, err)
	}
	if err := os.WriteFile(checkpoints[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	env := &Env{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, Getenv: func(string) string { return "" },
	}
	if code := Main(t.Context(), env, []string{"--state-dir", dir, "node", "down"}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(errs.String(), checkpoints[0]) || strings.Contains(errs.String(), checkpoints[1]) {
		t.Errorf("the output is %q", errs.String())
	}
}

// TestGlobalFlagsAreNotHidden checks that no command has a flag with the name of a global one. Code that reads the
// global flag would not see it, and a setting would override the command line.
func TestGlobalFlagsAreNotHidden(t *testing.T) {
	root := New(&Env{Getenv: func(string) string { return "" }})
	commandstest.Walk(root, func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if cmd != root && root.PersistentFlags().Lookup(f.Name) != nil {
				t.Errorf("%s --%s hides the global flag", cmd.CommandPath(), f.Name)
			}
		})
	})
}

// TestCompletionScripts checks that a script is written for each supported shell, and that other shells are refused.
func TestCompletionScripts(t *testing.T) {
	for shell, part := range map[string]string{
		"bash":       "complete -o default -F __start_podctl podctl",
		"zsh":        "#compdef podctl",
		"fish":       "complete -c podctl",
		"powershell": "Register-ArgumentCompleter",
	} {
		code, stdout, stderr := call(t, "", "completion", shell)
		if code != 0 || !strings.Contains(stdout, part) || stderr != "" {
			t.Errorf("%s: exit code %d %s", shell, code, stderr)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		if code, _, stderr := call(t, "", args...); code != exit.Error || !strings.Contains(stderr, "--help") {
			t.Errorf("%v: exit code %d %s", args, code, stderr)
		}
	}
}

// TestNoHintsForCommands checks that hints are given only for words that are not commands, and that the commands they
// name exist.
func TestNoHintsForCommands(t *testing.T) {
	root := New(commandstest.Env("", io.Discard, io.Discard, time.Now))
	for _, cmd := range root.Commands() {
		for _, word := range append([]string{cmd.Name()}, cmd.Aliases...) {
			if err := flags.Unknown(root, word); strings.Contains(err.Error(), "; use ") {
				t.Errorf("%s is a command: %v", word, err)
			}
		}
	}
	for word, want := range map[string]string{
		"svc": "`podctl get services`", "deployment": "`podctl get deployments`",
	} {
		if err := flags.Unknown(root, word); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", word, err)
		}
	}
}
