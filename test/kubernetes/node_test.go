package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	stateDir = "/var/lib/podctl"
	socket   = stateDir + "/node/containerd.sock"
	podLogs  = "/var/log/pods"
	// patience limits each wait for a kubelet or a pod.
	patience = 3 * time.Minute
	// calm is how long a kubelet that has all pods is watched. It checks its pods each second, cleans up every two
	// seconds, and reads its directory every five.
	calm = 12 * time.Second
)

// node is podctl with its containerd, with the paths of a real node.
type node struct {
	needed

	cri runtimeapi.RuntimeServiceClient
}

// result is the result of one call of podctl.
type result struct {
	stdout, stderr string
	code           int
}

// newNode starts podctl's containerd.
func newNode(t *testing.T) *node {
	t.Helper()
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{needed: programs}
	// Each test has a cluster of its own. podctl would take it for a wrong one.
	if err = os.RemoveAll(filepath.Join(stateDir, "cluster")); err != nil {
		t.Fatal(err)
	}
	n.must(t, "node", "up", "--containerd", n.containerd,
		"--load", filepath.Join(n.images, "pause.tar"), "--load", filepath.Join(n.images, "demo.tar"))
	t.Cleanup(func() { n.must(t, "node", "down") })
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n.cri = runtimeapi.NewRuntimeServiceClient(conn)
	return n
}

func (n *node) run(t *testing.T, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), n.podctl, args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func (n *node) must(t *testing.T, args ...string) result {
	t.Helper()
	r := n.run(t, args...)
	if r.code != 0 {
		t.Fatalf("podctl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// pods returns the result of `podctl get -o json` for all pods.
func (n *node) pods(t *testing.T, args ...string) []object {
	t.Helper()
	return items(t, []byte(n.must(t, append([]string{"get", "-A", "-o", "json"}, args...)...).stdout))
}

// records maps the ids of the runtime's sandboxes and containers to their names and states.
type records map[string]string

// records queries the runtime. The states include when a container was started.
func (n *node) records(t *testing.T) records {
	t.Helper()
	sandboxes, err := n.cri.ListPodSandbox(context.WithoutCancel(t.Context()), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	containers, err := n.cri.ListContainers(context.WithoutCancel(t.Context()), &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found, pods := records{}, map[string]string{}
	for _, s := range sandboxes.GetItems() {
		pods[s.GetId()] = s.GetMetadata().GetNamespace() + "/" + s.GetMetadata().GetName()
		found[s.GetId()] = pods[s.GetId()] + " " + s.GetState().String()
	}
	for _, c := range containers.GetContainers() {
		found[c.GetId()] = pods[c.GetPodSandboxId()] + "/" + c.GetMetadata().GetName() + " " + c.GetState().String()
	}
	return found
}

const (
	running = "CONTAINER_RUNNING"
	exited  = "CONTAINER_EXITED"
)

// live returns the running ones.
func (r records) live() records {
	live := maps.Clone(r)
	maps.DeleteFunc(live, func(_, what string) bool { return strings.HasSuffix(what, exited) })
	return live
}

// idOf returns the id of a running container, such as default/web/app.
func (r records) idOf(t *testing.T, name string) string {
	t.Helper()
	for id, what := range r {
		if what == name+" "+running {
			return id
		}
	}
	t.Fatalf("container %s does not run: %v", name, r)
	return ""
}

// sameRuns checks that running containers continue to run, that none was started, and that none of the finished ones
// ran again.
func sameRuns(t *testing.T, before, after records) {
	t.Helper()
	for id, what := range before.live() {
		if after[id] != what {
			t.Errorf("%s %.12s: now %q", what, id, after[id])
		}
	}
	for id, what := range after {
		if _, known := before[id]; !known {
			t.Errorf("%s %.12s is new", what, id)
		}
	}
}

// stop stops a container directly in the runtime.
func (n *node) stop(t *testing.T, id string) {
	t.Helper()
	if _, err := n.cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
}

// stopSandbox stops the sandbox of a pod with all its containers.
func (n *node) stopSandbox(t *testing.T, pod string) {
	t.Helper()
	for id, what := range n.records(t) {
		if what == pod+" SANDBOX_READY" {
			if _, err := n.cri.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("pod %s has no sandbox", pod)
}

// until calls asked once per second until it returns an empty string.
func until(t *testing.T, asked func() string) {
	t.Helper()
	untilEvery(t, time.Second, asked)
}

// untilEvery calls asked after each pause until it returns an empty string.
func untilEvery(t *testing.T, pause time.Duration, asked func() string) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		missing := asked()
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s: %s", patience, missing)
		}
		time.Sleep(pause)
	}
}

// object is a Kubernetes document.
type object map[string]any

func items(t *testing.T, text []byte) []object {
	t.Helper()
	var list struct{ Items []object }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return list.Items
}

// at returns the value at a path of names, or an empty string.
func (o object) at(path ...string) string {
	var value any = map[string]any(o)
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	text, _ := value.(string)
	return text
}

// condition returns the status of a condition.
func (o object) condition(kind string) string { return o.wholeCondition(kind).at("status") }

// wholeCondition returns a condition; nil without it.
func (o object) wholeCondition(kind string) object {
	status, _ := o["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		if c, _ := c.(map[string]any); c["type"] == kind {
			return c
		}
	}
	return nil
}
