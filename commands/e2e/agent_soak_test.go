//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// soak is a long run of an agent and its pods, with one action each second.
type soak struct {
	m     *machine
	agent *agentProcess
	port  string
	rand  *rand.Rand
	// images are references to different images.
	images []string
	steps  int
	// done counts the actions by name.
	done map[string]int
}

// soakPods is the number of pods.
const soakPods = 8

const soakPod = `apiVersion: v1
kind: ConfigMap
metadata: {name: soak-%[1]d}
data: {version: "%[2]d"}
---
apiVersion: v1
kind: Pod
metadata: {name: soak-%[1]d}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: config, configMap: {name: soak-%[1]d}}, {name: scratch, emptyDir: {}}]
  containers:
  - name: app
    image: %[3]q
    imagePullPolicy: Always
    args: [serve, --http, ":8080"]
    env: [{name: VERSION, value: "%[4]d"}]
    volumeMounts: [{name: config, mountPath: /config}, {name: scratch, mountPath: /scratch}]
    livenessProbe: {periodSeconds: 1, failureThreshold: 2, httpGet: {path: /livez, port: 8080}}
    readinessProbe: {periodSeconds: 1, httpGet: {path: /readyz, port: 8080}}
  - name: talker
    image: %[3]q
    args: [log, --forever, --every, 2ms]
`

// testAgentSoak: the agent runs through edits, deaths, failed probes, restarts of the runtime, much log output, pulls
// and collected images. In the end it uses no more memory, goroutines, files and disk than after a tenth of the time.
// Deleted pods leave nothing behind. The test takes PODCTL_AGENT_SOAK (`make soak`: an hour), or some seconds.
func testAgentSoak(t *testing.T, m *machine) {
	lasts := durationOf(t, "PODCTL_AGENT_SOAK", 15*time.Second)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &soak{
		m: m, port: freePort(t), rand: rand.New(rand.NewPCG(seed, 0)), images: differentImages(t, 12),
		done: map[string]int{},
	}
	empty := s.leftovers(t)
	defer func() {
		if t.Failed() {
			t.Logf("resources %v, want %v as before", s.leftovers(t), empty)
		}
	}()
	s.agent = startAgent(t, m, t.TempDir(), "--listen", s.port, "--container-log-max-size", "256Ki", "--container-log-max-files", "2",
		"--image-gc-high-threshold", "1", "--image-gc-low-threshold", "0", "--max-dead-containers", "20")
	for i := range soakPods {
		s.write(t, i)
	}
	until(t, "all pods are ready", func() bool { return s.ready(t) == soakPods })
	s.live(t, max(lasts/10, 5*time.Second))
	first := s.uses(t)
	s.live(t, lasts)
	last := s.uses(t)
	t.Logf("%d steps: %v", s.steps, s.done)
	t.Logf("after a tenth of the time %v", first)
	t.Logf("at the end    %v", last)
	for what, more := range map[string]float64{
		"process_resident_memory_bytes": 24 << 20, "go_goroutines": 30, "process_open_fds": 30, "disk": 64 << 20,
	} {
		if last[what] > first[what]*1.2+more {
			t.Errorf("%s was %.0f, and is %.0f", what, first[what], last[what])
		}
	}
	until(t, "all pods are ready in the end", func() bool { return s.ready(t) == soakPods })
	for i := range soakPods {
		s.agent.remove(t, fmt.Sprintf("soak-%d.yaml", i))
	}
	for i := range soakPods {
		until(t, "all pods are gone", func() bool { return m.isGone(t, fmt.Sprintf("soak-%d", i)) })
	}
	until(t, "all their files and containers are gone",
		func() bool { return strings.Join(s.leftovers(t), "\n") == strings.Join(empty, "\n") })
	s.agent.stop(t)
}

// durationOf returns a duration from the environment, or the usual one.
func durationOf(t *testing.T, variable string, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// differentImages returns images of the demo program in a registry, each with a layer of its own.
func differentImages(t *testing.T, count int) (refs []string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	demo, err := tarball.ImageFromPath(filepath.Join(need(t, "PODCTL_IMAGES"), "demo.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		layer, err := random.Layer(64<<10, "application/vnd.docker.image.rootfs.diff.tar.gzip")
		if err != nil {
			t.Fatal(err)
		}
		img, err := mutate.AppendLayers(demo, layer)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(fmt.Sprintf("%s/demo:v%d", strings.TrimPrefix(server.URL, "http://"), i))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, img); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref.Name())
	}
	return refs
}

// write writes the manifest of a pod with a changed image or variable, and changed content of its volume.
func (s *soak) write(t *testing.T, i int) {
	t.Helper()
	image := s.images[(i+s.steps/60)%len(s.images)]
	s.agent.put(t, fmt.Sprintf("soak-%d.yaml", i), fmt.Sprintf(soakPod, i, s.steps, image, s.steps/4))
}

// live performs one action each second.
func (s *soak) live(t *testing.T, lasts time.Duration) {
	t.Helper()
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(time.Second) {
		s.steps++
		i := s.rand.IntN(soakPods)
		op := s.rand.IntN(600)
		what := "edit"
		switch {
		case op < 60:
			what = "death"
			s.kill(t, fmt.Sprintf("soak-%d", i))
		case op < 120:
			what = "failed probe"
			s.fail(t, fmt.Sprintf("soak-%d", i))
		case op < 125:
			what = "restart of the runtime"
			restartContainerd(t, s.m)
		case op < 150:
			what = "removal"
			s.agent.remove(t, fmt.Sprintf("soak-%d.yaml", i))
			time.Sleep(3 * time.Second)
			s.write(t, i)
		case op < 170:
			what = "restart by hand"
			s.m.run(t, "restart", fmt.Sprintf("soak-%d", i)) // It may be gone, or held.
		default:
			s.write(t, i)
		}
		s.done[what]++
	}
}

// kill kills the process of a container, if there is one.
func (s *soak) kill(t *testing.T, pod string) {
	t.Helper()
	for _, id := range s.m.ids(t, pod) {
		reply, err := s.m.cri.ContainerStatus(t.Context(),
			&runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
		if err != nil {
			continue // It has ended meanwhile.
		}
		var pid int
		_, rest, _ := strings.Cut(reply.GetInfo()["info"], `"pid":`)
		if _, err := fmt.Sscan(strings.TrimLeft(rest, " "), &pid); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // It may have ended.
			return
		}
	}
}

// fail makes the liveness probe of a pod fail, if the pod runs.
func (s *soak) fail(t *testing.T, pod string) {
	t.Helper()
	address := strings.TrimSpace(s.m.run(t, "get", pod, "-o", "jsonpath={.status.podIP}").stdout)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+":8080/switch/livez/off",
		http.NoBody)
	if err != nil {
		return // The pod has no address now.
	}
	client := &http.Client{Timeout: time.Second}
	if reply, err := client.Do(request); err == nil {
		_ = reply.Body.Close() // The body is not used.
	}
}

// ready returns the number of ready pods.
func (s *soak) ready(t *testing.T) (count int) {
	t.Helper()
	for i := range soakPods {
		if s.m.ready(t, fmt.Sprintf("soak-%d", i)).Status == v1.ConditionTrue {
			count++
		}
	}
	return count
}

// uses returns the metrics of the agent's resource usage at rest.
func (s *soak) uses(t *testing.T) map[string]float64 {
	t.Helper()
	time.Sleep(2 * time.Second)
	page, uses := read(t, "http://"+s.port+"/metrics"), map[string]float64{}
	for _, metric := range []string{
		"process_resident_memory_bytes", "go_goroutines", "process_open_fds", "go_memstats_heap_inuse_bytes",
	} {
		_, rest, _ := strings.Cut(page, "\n"+metric+" ")
		var value float64
		if _, err := fmt.Sscan(rest, &value); err != nil {
			t.Fatalf("no metric %s", metric)
		}
		uses[metric] = value
	}
	uses["disk"] = float64(diskUse(t, s.m.state))
	return uses
}

// diskUse returns the size of a directory on disk in bytes, without other file systems.
func diskUse(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	var top unix.Stat_t
	if err := unix.Lstat(dir, &top); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		var stat unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &stat)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // It was removed meanwhile.
		case err != nil:
			return err
		case stat.Dev == top.Dev:
			bytes += stat.Blocks * 512
		case entry.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// cgroupOfPod matches the cgroups of pods. Their parents remain.
var cgroupOfPod = regexp.MustCompile(`[-/]pod[0-9a-f]{8}`)

// leftovers returns the resources of pods except records and logs: mounts, cgroups, networks, shims, addresses,
// containers and state directories.
func (s *soak) leftovers(t *testing.T) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	groups, err := cgroupsBelow(s.m.cgroupRoot())
	if err != nil {
		t.Fatal(err)
	}
	containers, err := s.m.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	groups = slices.DeleteFunc(groups, func(group string) bool { return !cgroupOfPod.MatchString(group) })
	return []string{
		fmt.Sprintf("%d mounts", strings.Count(string(mounts), s.m.state+"/")),
		fmt.Sprintf("cgroups %v", groups),
		fmt.Sprintf("machinery %v", s.m.machinery(t)),
		fmt.Sprintf("networks %v", orphanedNetworks(t)),
		fmt.Sprintf("%d containers", len(containers.GetContainers())),
		fmt.Sprintf("state %v", glob(t, filepath.Join(s.m.state, "pods", "*"))),
	}
}
