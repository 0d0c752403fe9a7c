//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// judge makes random changes to random pods while random calls fail. It checks that nothing is lost, leaked or
// duplicated, and that the messages of podctl are readable.
type judge struct {
	t *testing.T
	m *machine
	// proxy is in front of the runtime, at endpoint.
	proxy    *runtimetest.Proxy
	endpoint string
	// others are the files of other pods.
	others []string
	r      *rand.Rand
	// words are the containers that the pod must have.
	words []string
	log   []string
	// other has the containers of a pod that must not change.
	other map[string]string
}

// TestRandomFaultsInMemory runs the binary on a runtime in memory.
func TestRandomFaultsInMemory(t *testing.T) { judgeAll(t, machineInMemory(t), 6) }

// machineInMemory returns a machine with a runtime in memory.
func machineInMemory(t *testing.T) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "podctl-judge-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("PODCTL_PROXY_MODE", "none") // The result must not depend on rules and sysctls of this machine.
	m := &machine{bin: need(t, "PODCTL_BIN"), state: dir, logs: filepath.Join(dir, "logs")}
	t.Cleanup(func() {
		if removeErr := removeCgroups(m.cgroupRoot()); removeErr != nil {
			t.Error(removeErr)
		}
	})
	if err = os.Mkdir(filepath.Join(dir, "node"), 0o700); err != nil {
		t.Fatal(err)
	}
	server, err := runtimetest.NewServer(t.Context(), m.socket(), runtimetest.NewClock(time.Now()),
		"registry.local/podctl/demo:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	conn, err := grpc.NewClient("unix://"+m.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m.cri = runtimeapi.NewRuntimeServiceClient(conn)
	return m
}

// testRandomFaults runs the binary on containerd.
func testRandomFaults(t *testing.T, m *machine) { judgeAll(t, m, 4) }

func judgeAll(t *testing.T, m *machine, few int) {
	t.Helper()
	socket := filepath.Join(os.TempDir(), filepath.Base(m.state)+".judge")
	proxy, err := runtimetest.StartProxy(t.Context(), socket, m.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close() //nolint:errcheck // the test is over
	j := &judge{t: t, m: m, proxy: proxy, endpoint: "unix://" + socket}
	other := write(t, strings.Replace(two, "name: two", "name: other", 1))
	j.podctl(t, "apply", "--wait", other)
	j.other, j.others = m.ids(t, "other"), j.files(t)
	count, seed := trials(few)
	for i := range count {
		j.r, j.log = rand.New(rand.NewPCG(seed, uint64(i))), nil
		j.trial()
		if t.Failed() {
			t.Fatalf("PODCTL_SEED=%d, trial %d:\n%s", seed, i, strings.Join(j.log, "\n"))
		}
	}
	j.podctl(t, "delete", "other")
}

// files returns the files of pods and the lock files.
func (j *judge) files(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"pods", "locks"} {
		found, err := filepath.Glob(filepath.Join(j.m.state, dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func (j *judge) podctl(t *testing.T, args ...string) {
	t.Helper()
	j.m.must(t, append([]string{"-r", j.endpoint, "--timeout", "60s"}, args...)...)
}

// checkGone checks that nothing is left of the pod.
func (j *judge) checkGone(t *testing.T) {
	t.Helper()
	if left := j.m.records(t, "two"); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
	for _, state := range []runtimeapi.PodSandboxState{
		runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
	} {
		if left := j.m.sandboxes(t, "two", state); len(left) > 0 {
			t.Errorf("sandboxes are left: %v", left)
		}
	}
	if left := j.files(t); len(left) > len(j.others) {
		t.Errorf("files are left: %v, before there were %v", left, j.others)
	}
}

// manifest returns a random pod.
func (j *judge) manifest() (text string) {
	text, j.words = randomPod(j.r, "two")
	return text
}

// randomPod returns a random pod and the names of its containers. Its only init containers are sidecars, because others
// end at once in containerd and never in memory.
func randomPod(r *rand.Rand, name string) (text string, containers []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  terminationGracePeriodSeconds: 1\n",
		name)
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "  hostname: h%d\n", r.IntN(2))
	}
	fmt.Fprintf(&b, "  volumes: [{name: v, emptyDir: {}}]\n")
	if r.IntN(2) == 0 {
		containers = append(containers, "s")
		fmt.Fprintf(&b, "  initContainers: [{name: s, image: 'registry.local/podctl/demo:1', args: [sleep], restartPolicy: Always}]\n")
	}
	fmt.Fprintf(&b, "  containers:\n")
	for _, container := range []string{"a", "b", "c"}[:1+r.IntN(3)] {
		containers = append(containers, container)
		fmt.Fprintf(&b, "  - {name: %s, image: 'registry.local/podctl/demo:1', args: [sleep], "+
			"env: [{name: X, value: 'v%d'}]", container, r.IntN(3))
		if r.IntN(2) == 0 {
			b.WriteString(", volumeMounts: [{name: v, mountPath: /v}]")
		}
		if r.IntN(4) == 0 {
			b.WriteString(", lifecycle: {postStart: {exec: {command: [/demo, exit, '0']}}, preStop: {exec: {command: [/demo, exit, '0']}}}")
		}
		b.WriteString("}\n")
	}
	return b.String(), containers
}

// trial tests one pod, with a second version in some cases.
func (j *judge) trial() {
	path := write(j.t, j.manifest())
	if j.r.IntN(3) > 0 {
		j.podctl(j.t, "apply", "--wait", path)
		if j.r.IntN(2) == 0 {
			path = write(j.t, j.manifest())
		}
	}
	for range 1 + j.r.IntN(2) {
		j.disturbed(path)
	}
	j.podctl(j.t, "apply", "--wait", path)
	j.settled()
	if j.r.IntN(2) == 0 {
		j.disturbed(path, "delete", "-f")
	}
	j.podctl(j.t, "delete", "-f", path)
	j.checkGone(j.t)
	if !sameMap(j.other, j.m.ids(j.t, "other")) {
		j.t.Error("another pod's containers were touched")
	}
}

// disturbed runs one command while one or two calls fail.
func (j *judge) disturbed(path string, words ...string) {
	if words == nil {
		all := [][]string{{"apply"}, {"apply", "--wait"}, {"delete", "-f"}, {"apply", "--probe"}}
		words = all[j.r.IntN(len(all))]
	}
	ctx, cancel := context.WithTimeout(j.t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"-r", j.endpoint, "--request-timeout", "1s", "--timeout", "8s"},
		append(slices.Clone(words), path)...)
	cmd := j.m.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	for range 1 + j.r.IntN(2) {
		j.proxy.Disturb(j.fault(func() { cmd.Process.Kill() })) //nolint:errcheck // it may be gone already
	}
	err := cmd.Run()
	left := j.proxy.Calm()
	code := cmd.ProcessState.ExitCode()
	j.log = append(j.log,
		fmt.Sprintf("%v: %v, %d faults were not injected\n%s%s", words, err, left, stdout.String(), stderr.String()))
	if ctx.Err() != nil {
		j.t.Error("podctl did not end")
	}
	if code > 0 {
		j.readable(stderr.String(), code)
	}
}

// fault returns a random fault and logs it.
func (j *judge) fault(die func()) runtimetest.Disturbance {
	d := randomFault(j.r, die)
	j.log = append(j.log, faultText(&d))
	return d
}

// readable checks that an error is a sentence about the pod, without technical noise.
func (j *judge) readable(stderr string, code int) {
	last := stderr[strings.LastIndex(strings.TrimSuffix(stderr, "\n"), "\n")+1:]
	if code != 1 && code != 3 {
		j.t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr, "podctl: ") || !strings.Contains(last, "default/two") {
		j.t.Errorf("no message about the pod: %s", last)
	}
	for _, noise := range []string{
		"rpc error", "RST_STREAM", "context deadline", "context canceled", "goroutine", "%!",
	} {
		if strings.Contains(stderr, noise) {
			j.t.Errorf("noise in the message: %s", stderr)
		}
	}
	if path := os.Getenv("PODCTL_SENTENCES"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = fmt.Fprintf(f, "%d %s", code, last)
			_ = f.Close()
		}
	}
}

// settled checks that the pod is as its manifest describes, with each container once.
func (j *judge) settled() {
	ids := j.m.ids(j.t, "two")
	for _, name := range j.words {
		if ids[name] == "" {
			j.t.Errorf("container %s does not run: %v", name, ids)
		}
	}
	if len(ids) != len(j.words) {
		j.t.Errorf("running %v, want %v", ids, j.words)
	}
	j.m.readySandbox(j.t, "two")
}
