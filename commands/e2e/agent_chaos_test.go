//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// unrest is a directory of manifests that changes all the time.
type unrest struct {
	m     *machine
	agent *agentProcess
	rand  *rand.Rand
	// files maps each file to its pod. versions has the version that each pod must run.
	files    map[string]string
	versions map[string]int
	// steady has the first containers of pods that the test has not touched since.
	steady map[string]string
	names  int
	// disk is a small file system for the checkpoints of podctl.
	disk string
}

// testAgentChaos edits, renames, replaces and removes files. Meanwhile it kills the agent and containerd, and fills
// the disk of the checkpoints for a while. In the end, exactly the pods of the directory run, and untouched pods still
// have their first containers. The test takes PODCTL_AGENT_UNREST (`make soak`: five minutes), or some seconds.
func testAgentChaos(t *testing.T, m *machine) {
	lasts := durationOf(t, "PODCTL_AGENT_UNREST", 20*time.Second)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	disk := smallDisk(t, filepath.Join(m.state, "pods"))
	u := &unrest{
		m: m, disk: disk, agent: startAgent(t, m, t.TempDir()), rand: rand.New(rand.NewPCG(seed, 0)),
		files: map[string]string{}, versions: map[string]int{}, steady: map[string]string{},
	}
	pods := 10
	switch {
	case slowness() > 1:
		pods = 5
	case lasts > time.Minute:
		pods = 20
	}
	for range pods {
		u.add(t)
	}
	until(t, "the first pods run", func() bool { return u.isAsWanted(t) })
	u.steady = u.running(t)
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(time.Duration(u.rand.IntN(500)) * time.Millisecond) {
		u.step(t)
	}
	u.free(t)
	until(t, "the pods of the directory run", func() bool { return u.isAsWanted(t) })
	time.Sleep(patient(3 * time.Second))
	now := u.running(t)
	for pod, id := range u.steady {
		if now[pod] != id {
			t.Errorf("container of %s is %s, want %s: the pod was not changed", pod, now[pod], id)
		}
	}
	if !u.isAsWanted(t) || len(u.steady) == 0 {
		t.Errorf("running %v, want %v; %d were never changed", now, u.versions, len(u.steady))
	}
	for file := range u.files {
		u.remove(t, file)
	}
	// A stopping agent finishes a deletion first. Only an idle one must stop at once.
	until(t, "all pods are gone", func() bool { return u.isEmpty(t) })
	u.agent.stop(t)
}

// step makes one random change. It leaves three pods alone.
func (u *unrest) step(t *testing.T) {
	t.Helper()
	files := slices.Sorted(maps.Keys(u.files))
	if len(files) > 3 {
		files = files[3:]
	}
	file := files[u.rand.IntN(len(files))]
	pod := u.files[file]
	switch op := u.rand.IntN(24); {
	case op < 4 && len(u.files) < 25:
		u.add(t)
	case op < 9:
		u.touched(pod)
		u.versions[pod]++
		u.write(t, file)
	case op < 11 && len(u.files) > 5:
		u.remove(t, file)
	case op < 14:
		u.rename(t, file)
	case op < 16:
		// A user stops a container.
		if id := u.running(t)[pod]; id != "" {
			u.touched(pod)
			_, _ = u.m.cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id}) // It may have ended meanwhile.
		}
	case op < 18:
		u.agent.kill(t)
		u.agent = startAgent(t, u.m, u.agent.dir)
	case op == 18:
		restartContainerd(t, u.m)
	case op < 21:
		u.fill(t)
	case op < 23:
		u.free(t)
	default:
		u.agent.put(t, ".hidden.yaml", "nonsense")
		u.agent.put(t, "broken.yaml", "kind: [")
	}
}

// smallDisk mounts a file system of some megabytes until the end of the test.
func smallDisk(t *testing.T, dir string) string {
	t.Helper()
	err := errors.Join(os.MkdirAll(dir, 0o700), unix.Mount("small", dir, "tmpfs", 0, "size=16m,mode=0700"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// filler returns the file that fills the disk. No pod has such a UID.
func (u *unrest) filler() string { return filepath.Join(u.disk, "a filler") }

// fill fills the disk of the checkpoints.
func (u *unrest) fill(t *testing.T) {
	t.Helper()
	f, err := os.Create(u.filler())
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if err = errors.Join(f.Close(), ignoreFull(err)); err != nil {
		t.Fatal(err)
	}
}

func ignoreFull(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return nil
	}
	return err
}

func (u *unrest) free(t *testing.T) {
	t.Helper()
	if err := os.Remove(u.filler()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func (u *unrest) touched(pod string) { delete(u.steady, pod) }

func (u *unrest) add(t *testing.T) {
	t.Helper()
	u.names++
	file, pod := fmt.Sprintf("f%02d.yaml", u.names), fmt.Sprintf("unrest-%d", u.names)
	u.files[file], u.versions[pod] = pod, 1
	u.write(t, file)
}

// write writes a file in place, or writes a new file and renames it.
func (u *unrest) write(t *testing.T, file string) {
	t.Helper()
	pod := u.files[file]
	text := fmt.Sprintf(simplePod, pod, fmt.Sprintf("%ds", u.versions[pod]))
	if u.rand.IntN(2) == 0 {
		u.agent.put(t, file, text)
		return
	}
	u.agent.put(t, file+".new", text)
	if err := os.Rename(filepath.Join(u.agent.dir, file+".new"), filepath.Join(u.agent.dir, file)); err != nil {
		t.Fatal(err)
	}
}

func (u *unrest) remove(t *testing.T, file string) {
	t.Helper()
	pod := u.files[file]
	u.touched(pod)
	delete(u.files, file)
	delete(u.versions, pod)
	if err := os.Remove(filepath.Join(u.agent.dir, file)); err != nil {
		t.Fatal(err)
	}
}

func (u *unrest) rename(t *testing.T, file string) {
	t.Helper()
	to := fmt.Sprintf("r%d-%s", u.rand.IntN(1000), file)
	if err := os.Rename(filepath.Join(u.agent.dir, file), filepath.Join(u.agent.dir, to)); err != nil {
		t.Fatal(err)
	}
	u.files[to] = u.files[file]
	delete(u.files, file)
}

// running maps the pods of the test to the IDs of their running containers.
func (u *unrest) running(t *testing.T) map[string]string {
	t.Helper()
	reply, err := u.m.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	ids := map[string]string{}
	if err != nil {
		return ids // containerd is starting.
	}
	for _, c := range reply.GetContainers() {
		if name := c.GetLabels()["io.kubernetes.pod.name"]; strings.HasPrefix(name, "unrest-") {
			ids[name] = c.GetId()
		}
	}
	return ids
}

// isEmpty reports whether the runtime has no pods of the test, and podctl no checkpoints.
func (u *unrest) isEmpty(t *testing.T) bool {
	t.Helper()
	checkpoints, err := os.ReadDir(u.disk)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := u.m.cri.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil || len(checkpoints) > 0 {
		return false
	}
	return !slices.ContainsFunc(reply.GetItems(), func(s *runtimeapi.PodSandbox) bool {
		return strings.HasPrefix(s.GetMetadata().GetName(), "unrest-")
	})
}

// isAsWanted reports whether every pod runs in its version, and no other pod runs.
func (u *unrest) isAsWanted(t *testing.T) bool {
	t.Helper()
	now := u.running(t)
	if len(now) != len(u.versions) {
		return false
	}
	for pod, version := range u.versions {
		if now[pod] == "" {
			return false
		}
		r := u.m.run(t, "exec", pod, "--", "/demo", "read", "/proc/1/cmdline")
		want := fmt.Sprintf("--every\x00%ds\x00", version)
		if r.code != 0 || !strings.HasSuffix(r.stdout, want) {
			return false
		}
	}
	return true
}
