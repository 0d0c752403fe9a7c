package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Images of the pods. Containers of the second one have the variable VERSION=2.
const (
	firstImage  = "registry.local/podctl/demo:1"
	secondImage = "registry.local/podctl/demo:2"
)

// kubectl is a user of the API server.
type kubectl struct {
	program, config string
	// namespace is default if empty.
	namespace string
	// left returns a record of a pod that the node has not removed; empty if there is none. A kubelet may take a minute
	// to remove its records, so it has no such function.
	left func(t *testing.T) string
}

// TestKubectl uses kubectl with pods of podctl agent, and then with pods of a kubelet, from which the expected results
// are.
func TestKubectl(t *testing.T) {
	n := newNode(t)
	second := filepath.Join(t.TempDir(), "second.tar")
	makeImage := exec.CommandContext(t.Context(), filepath.Join(n.images, "mkimage"), "-name", secondImage,
		"-binary", filepath.Join(n.images, "demo"), "-env", "VERSION=2", "-o", second)
	if out, err := makeImage.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n.must(t, "image", "load", second)
	for _, agent := range []string{"podctl", "kubelet"} {
		t.Run(agent, func(t *testing.T) {
			api, dir := n.startServer(t), t.TempDir()
			k := &kubectl{program: setting(t, "KUBECTL_BIN"), config: api.kubeconfig(t, dir)}
			if agent == "podctl" {
				k.left = n.left
				// The images and the disk of the machine must not matter.
				api.awaitNode(t, n.startAgent(t, api, dir, "--eviction=false", "--image-gc-high-threshold=100"))
			} else {
				api.awaitNode(t, n.startKubelet(t, dir, api).process)
			}
			k.testAll(t)
		})
	}
}

// testAll runs all tests, and removes the pods of each.
func (k *kubectl) testAll(t *testing.T) {
	type test struct {
		name string
		run  func(t *testing.T)
	}
	for _, c := range []test{
		{"run", k.testRun},
		{"describe", k.testDescribe},
		{"logs", k.testLogs},
		{"waiting", k.testWaiting},
		{"exec", k.testExec},
		{"terminal", k.testTerminal},
		{"attach", k.testAttach},
		{"copy", k.testCopy},
		{"ports", k.testPorts},
		{"debug", k.testDebug},
		{"images", k.testImages},
		{"delete", k.testDelete},
		{"rollout", k.testRollout},
		{"node", k.testNode},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer k.clean(t)
			c.run(t)
		})
	}
}

// clean deletes all pods.
func (k *kubectl) clean(t *testing.T) {
	t.Helper()
	k.must(t, "delete", "pods", "--all", "--now")
	if k.left != nil {
		until(t, func() string { return k.left(t) })
	}
}

// command returns kubectl with arguments. It ends with the test.
func (k *kubectl) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), k.program, k.arguments(args)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.config, "TERM=xterm")
	return cmd
}

// arguments adds the namespace.
func (k *kubectl) arguments(args []string) []string {
	if k.namespace == "" {
		return args
	}
	return append([]string{"--namespace", k.namespace}, args...)
}

// call runs kubectl with an input. Cleanups may call it, too.
func (k *kubectl) call(t *testing.T, input string, args ...string) result {
	t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), patience+time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, k.program, k.arguments(args)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.config)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), cmp.Or(ctx.Err(), err), &stdout, &stderr)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs kubectl successfully and returns its output.
func (k *kubectl) must(t *testing.T, args ...string) string {
	t.Helper()
	return k.mustWith(t, "", args...)
}

func (k *kubectl) mustWith(t *testing.T, input string, args ...string) string {
	t.Helper()
	r := k.call(t, input, args...)
	if r.code != 0 {
		t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// prints checks the whole output of a successful kubectl.
func (k *kubectl) prints(t *testing.T, want string, args ...string) {
	t.Helper()
	if got := k.must(t, args...); got != want {
		t.Errorf("kubectl %s:\n%swant\n%s", strings.Join(args, " "), got, want)
	}
}

// fails checks the exit code of kubectl, and that its messages contain a text.
func (k *kubectl) fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	if r := k.call(t, "", args...); r.code != code || !strings.Contains("\n"+r.stderr, want) {
		t.Errorf("kubectl %s: exit code %d, want %d\n%swant\n%s", strings.Join(args, " "), r.code, code, r.stderr, want)
	}
}

// overrides are fields of the pods that kubectl run makes. There is no scheduler, so each pod names its node.
func overrides(grace int) string {
	return fmt.Sprintf(`{"spec": {"nodeName": %q, "dnsPolicy": "Default", "terminationGracePeriodSeconds": %d}}`, nodeName, grace)
}

// start runs a pod of demo whose container has the name of the pod, and waits until it is ready.
func (k *kubectl) start(t *testing.T, name string, grace int, args ...string) {
	t.Helper()
	k.must(t, append([]string{"run", name, "--image", firstImage, "--overrides", overrides(grace), "--"}, args...)...)
	k.ready(t, name)
}

// ready waits until a pod is ready.
func (k *kubectl) ready(t *testing.T, name string) { t.Helper(); k.await(t, name, "condition=Ready") }

// await waits for a condition, or for a value such as jsonpath={.status.phase}=Failed.
func (k *kubectl) await(t *testing.T, name, what string) {
	t.Helper()
	k.must(t, "wait", "pod/"+name, "--for", what, "--timeout", patience.String())
}

// get returns a value of a pod.
func (k *kubectl) get(t *testing.T, name, path string) string {
	t.Helper()
	return k.must(t, "get", "pod", name, "-o", "jsonpath="+path)
}

// make creates a pod of this node.
func (k *kubectl) make(t *testing.T, name string, spec object) {
	t.Helper()
	spec["nodeName"], spec["dnsPolicy"], spec["terminationGracePeriodSeconds"] = nodeName, "Default", 2
	k.create(t, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": spec})
}

func (k *kubectl) create(t *testing.T, o object) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	k.mustWith(t, string(text), "create", "-f", "-")
}

// containers returns containers of demo: "NAME ARGUMENT...".
func containers(lines ...string) []object {
	var all []object
	for _, line := range lines {
		fields := strings.Fields(line)
		all = append(all, object{"name": fields[0], "image": firstImage, "args": fields[1:]})
	}
	return all
}

// makeShell creates a pod whose container sh runs a script with the programs of this machine. Its files in /data stay
// when it restarts.
func (k *kubectl) makeShell(t *testing.T, name, script string, terminal bool) {
	t.Helper()
	volumes := []object{{"name": "data", "emptyDir": object{}}}
	mounts := []object{{"name": "data", "mountPath": "/data"}}
	for _, dir := range []string{"bin", "lib", "lib64", "usr"} {
		if _, err := os.Stat("/" + dir); err == nil {
			volumes = append(volumes, object{"name": dir, "hostPath": object{"path": "/" + dir}})
			mounts = append(mounts, object{"name": dir, "mountPath": "/" + dir, "readOnly": true})
		}
	}
	k.make(t, name, object{"volumes": volumes, "containers": []object{{
		"name": "sh", "image": firstImage, "command": []string{"/bin/sh", "-c", script},
		"stdin": terminal, "tty": terminal, "volumeMounts": mounts,
	}}})
}

// stay is the end of a script that runs until its pod is deleted.
const stay = "trap 'exit 0' TERM; sleep infinity & wait"
