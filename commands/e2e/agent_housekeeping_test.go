//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const manyPod = `apiVersion: v1
kind: Pod
metadata: {name: many}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - {name: c, image: "registry.local/podctl/demo:1", args: [sleep]}
  - {name: d, image: "registry.local/podctl/demo:1", args: [sleep]}
  - {name: e, image: "registry.local/podctl/demo:1", args: [sleep]}
`

// testHousekeeping: the agent removes the leftovers of its pods, and nothing else. The test has its own node, so that
// there are no other records. The cases are the kubelet's:
//
//   - test/e2e_node/garbage_collector_test.go, "Should eventually garbage collect containers when we exceed the number
//     of dead containers per container": "One Non-restarting Container" (two/b), "Many Restarting Containers" (many),
//     "Many Pods with Many Restarting Containers" (both). One record of each container remains, at most
//     --max-dead-containers of all, and none after the deletion of their pods
//   - test/e2e_node/container_log_rotation_test.go, "should be rotated and limited to a fixed amount of files": for
//     several pods, as with several workers
func testHousekeeping(t *testing.T, _ *machine) {
	m := newMachine(t)
	a := startAgent(t, m, t.TempDir(), "--container-log-max-size", "4Ki", "--container-log-max-files", "3",
		"--image-gc-high-threshold", "100", "--max-dead-containers", "3")
	talkers := []string{"talks", "chats"}
	for _, name := range talkers {
		a.put(t, name+".yaml", fmt.Sprintf(simplePod, name, "5ms"))
	}
	a.put(t, "two.yaml", two)
	a.put(t, "many.yaml", manyPod)
	until(t, "the pods run", func() bool {
		return m.isReady(t, "talks") && m.isReady(t, "chats") && m.isReady(t, "two") && m.isReady(t, "many")
	})
	gone := filepath.Join(m.state, "pods", "11111111-2222-3333-4444-555555555555")
	if err := os.MkdirAll(filepath.Join(gone, "volumes", "kubernetes.io~empty-dir", "v"), 0o750); err != nil {
		t.Fatal(err)
	}
	b := m.ids(t, "two")["b"]
	m.endAll(t, map[string][]string{"two": {"a"}, "many": {"c", "d", "e"}})
	m.endAll(t, map[string][]string{"two": {"a"}, "many": {"c", "d", "e"}})
	m.endAll(t, map[string][]string{"two": {"a"}})
	// Records are removed once a minute.
	there := func() bool { _, err := os.Stat(gone); return err == nil }
	dead := func() []string { return slices.Concat(m.dead(t, "two"), m.dead(t, "many")) }
	for end := time.Now().Add(patient(90 * time.Second)); time.Now().Before(end) && (there() || len(dead()) > 3); {
		time.Sleep(time.Second)
	}
	left := dead()
	if slices.Sort(left); there() || len(left) != 3 || len(slices.Compact(left)) != 3 {
		t.Errorf("files of the deleted pod: %t; records of exited containers: %v", there(), left)
	}
	if m.ids(t, "two")["b"] != b {
		t.Error("a running container was changed")
	}
	for _, name := range talkers {
		testRotation(t, m, a, name)
	}
	if log := a.log.String(); !strings.Contains(log, "msg=rotated") || !strings.Contains(log, "msg=removed") ||
		strings.Contains(log, "msg=housekeeping") {
		t.Errorf("the agent's log:\n%s", log)
	}
	a.remove(t, "two.yaml", "many.yaml", "talks.yaml", "chats.yaml")
	for _, name := range []string{"two", "many", "talks", "chats"} {
		until(t, name+" is gone", func() bool { return m.isGone(t, name) && len(m.records(t, name)) == 0 })
	}
	a.stop(t)
}

// testRotation: the log of a pod with much output is rotated repeatedly, and has three files.
func testRotation(t *testing.T, m *machine, a *agentProcess, name string) {
	dir := filepath.Join(m.logs, "default_"+name+"_*", "app")
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "0.log*"))
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(found, func(file string) bool { return strings.HasSuffix(file, ".tmp") })
	}
	until(t, "the log of "+name+" was rotated four times", func() bool {
		if found := files(); len(found) > 3 {
			t.Errorf("there are %v", found)
		}
		rotated := 0
		for line := range strings.Lines(a.log.String()) {
			if strings.Contains(line, "msg=rotated") && strings.Contains(line, name) {
				rotated++
			}
		}
		return rotated >= 4
	})
	if found := files(); len(found) != 3 {
		t.Errorf("there are %v", found)
	}
	// The container keeps writing while the lines are counted and read.
	if r := m.must(t, "logs", "--tail", "100", name); strings.Count(r.stdout, "\n") < 100 ||
		strings.Count(r.stdout, "\n") > 150 {
		t.Errorf("the last lines of a rotated log:\n%s", r.stdout)
	}
}

// endAll stops containers of pods, as a user might, and waits until they run again.
func (m *machine) endAll(t *testing.T, pods map[string][]string) {
	t.Helper()
	before := map[string]map[string]string{}
	for pod, names := range pods {
		before[pod] = m.ids(t, pod)
		for _, name := range names {
			_, err := m.cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: before[pod][name]})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for pod, names := range pods {
		for _, name := range names {
			until(t, name+" of "+pod+" runs again",
				func() bool { return m.runsAnother(t, pod, name, before[pod][name]) })
		}
	}
}

// dead returns the names of a pod's exited containers, one name for each record.
func (m *machine) dead(t *testing.T, pod string) (names []string) {
	t.Helper()
	reply, err := m.cri.ListContainers(t.Context(), byPod(pod))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range reply.GetContainers() {
		if c.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			names = append(names, pod+"/"+c.GetMetadata().GetName())
		}
	}
	return names
}

// testAgentImages: unused images are removed when their disk is full, but only after the agent has known them for some
// time. The cases are the kubelet's test/e2e_node/image_gc_test.go: "should GC unused images", "should not GC unused
// images prematurely". podctl has no counterpart of ImageMaximumGCAge, so the disk is full here. The test takes more
// than five minutes, the interval of image collection. The unit tests of housekeeping check the same with a simulated
// clock.
func testAgentImages(t *testing.T, _ *machine) {
	if testing.Short() {
		t.Skip("images are checked every five minutes, which is longer than short tests may take")
	}
	m := newMachine(t)
	unused, used := slowRegistry(t, 0), "registry.local/podctl/demo:1"
	m.must(t, "image", "pull", unused)
	args := []string{"--image-gc-high-threshold", "0", "--image-gc-low-threshold", "0"}
	a := startAgent(t, m, t.TempDir(), args...)
	a.put(t, "one.yaml", fmt.Sprintf(simplePod, "one", "1s"))
	until(t, "one runs", func() bool { return m.isReady(t, "one") })
	began := time.Now()
	a.kill(t)
	a = startAgent(t, m, a.dir, args...)
	for end := began.Add(patient(7 * time.Minute)); time.Now().Before(end) && m.image(t, unused) != nil; {
		time.Sleep(time.Second)
	}
	if took := time.Since(began); m.image(t, unused) != nil || took < 2*time.Minute {
		t.Errorf("after %s the image is %+v", took, m.image(t, unused))
	}
	if m.image(t, used) == nil || m.image(t, "registry.local/podctl/pause:1") == nil {
		t.Error("an image in use was removed")
	}
	a.remove(t, "one.yaml")
	until(t, "one is gone", func() bool { return m.isGone(t, "one") })
	a.stop(t)
}
