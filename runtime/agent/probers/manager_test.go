package probers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// The tests of this file have the cases of the kubelet's pkg/kubelet/prober/prober_manager_test.go, with the same
// names. Those of TestUpdatePodStatus and TestUpdatePodStatusWithInitContainers check the status that follows from
// verdicts: podstatus has them in TestStartedAndReady.

// probed returns a pod whose containers all run. A container whose name starts with readiness, liveness or startup has
// such a probe. One that is named all has each of them.
func probed(uid types.UID, names ...string) Observation {
	pod := &v1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ns", string(uid), uid
	seen := Observation{Desired: &podspec.Desired{Pod: pod}}
	for _, name := range names {
		kind := strings.TrimRight(name, "0123456789")
		c := v1.Container{Name: name}
		if kind == "readiness" || kind == "all" {
			c.ReadinessProbe = every(10)
		}
		if kind == "liveness" || kind == "all" {
			c.LivenessProbe = every(10)
		}
		if kind == "startup" || kind == "all" {
			c.StartupProbe = every(10)
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		seen.Running = append(seen.Running, Running{Name: name, ID: string(uid) + "-" + name, StartedAt: noon})
	}
	return seen
}

// workersOf returns the probes of a Set, as "pod container type".
func workersOf(s *Set) []string {
	var list []string
	for _, v := range s.Verdicts() {
		list = append(list, fmt.Sprintf("%s %s %s", v.Pod.UID, v.Container, v.Type))
	}
	return list
}

func wantWorkers(t *testing.T, s *Set, when string, want ...string) {
	t.Helper()
	if got := workersOf(s); !slices.Equal(got, want) {
		t.Errorf("%s: probes %v, not %v", when, got, want)
	}
}

func newSet() *Set { return New(noon.Add(-time.Hour), func() float64 { return 0 }) }

// TestAddRemovePods (kubelet: the test of that name).
func TestAddRemovePods(t *testing.T) {
	s := newSet()
	wantWorkers(t, s, "at first")
	s.Sync(noon, probed("without", "a1", "a2", "a3"))
	wantWorkers(t, s, "a pod without probes")
	s.Sync(noon, probed("with", "a1", "readiness", "a2", "liveness", "a3", "startup"))
	all := []string{"with liveness liveness", "with readiness readiness", "with startup startup"}
	wantWorkers(t, s, "a pod with probes", all...)
	s.Forget("without")
	wantWorkers(t, s, "the pod without probes goes", all...)
	s.Forget("with")
	wantWorkers(t, s, "the pod with probes goes")
	s.Forget("with")
	wantWorkers(t, s, "it goes again")
	if asks, wake := s.Next(noon); len(asks) > 0 || !wake.IsZero() {
		t.Errorf("asked %v, wakes at %s", asks, wake)
	}
}

// TestAddRemovePodsWithRestartableInitContainer checks that sidecars are probed (kubelet: the test of that name). The
// other half of the kubelet's test does not apply: a manifest with probes of an init container that is not a sidecar is
// refused.
func TestAddRemovePodsWithRestartableInitContainer(t *testing.T) {
	s, seen := newSet(), probed("u", "init", "all", "main")
	spec := &seen.Desired.Pod.Spec
	spec.InitContainers, spec.Containers = spec.Containers[:2], spec.Containers[2:]
	spec.InitContainers[1].RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	s.Sync(noon, seen)
	wantWorkers(t, s, "a sidecar", "u all liveness", "u all readiness", "u all startup")
	for range 2 {
		s.Forget("u")
		wantWorkers(t, s, "it goes")
	}
}

// TestCleanupPods checks that the removal of one pod does not affect another (kubelet: the test of that name).
func TestCleanupPods(t *testing.T) {
	s := newSet()
	s.Sync(noon, probed("goes", "readiness", "liveness", "startup"))
	s.Sync(noon, probed("stays", "readiness", "liveness", "startup"))
	s.Forget("goes")
	wantWorkers(t, s, "one has gone", "stays liveness liveness", "stays readiness readiness", "stays startup startup")
	if asks, _ := s.Next(noon); len(asks) != 3 {
		t.Errorf("asked %v", asks)
	}
}

// TestCleanupRepeated checks the repeated removal of many pods (kubelet: the test of that name).
func TestCleanupRepeated(t *testing.T) {
	s := newSet()
	for i := range 100 {
		s.Sync(noon, probed(types.UID(strconv.Itoa(i)), "all"))
	}
	for range 10 {
		for i := range 100 {
			s.Forget(types.UID(strconv.Itoa(i)))
		}
	}
	wantWorkers(t, s, "all have gone")
}

// TestUpdateReadiness checks that a pod becomes ready with its first success and not ready after failureThreshold
// failures. Only these changes request a pass (kubelet: the test of that name).
func TestUpdateReadiness(t *testing.T) {
	l := one(t, model.Readiness, every(10))
	for i, c := range []struct{ fails, look bool }{
		{false, true}, {false, false}, {true, false}, {true, false}, {true, true}, {true, false}, {false, true},
	} {
		l.fails[model.Readiness] = c.fails
		l.ticks(1)
		if l.last.NeedsPass != c.look || l.last.NeedsWrite() != (l.last.NeedsPass || l.last.IsEvent) {
			t.Errorf("answer %d: %+v", i, l.last)
		}
	}
}
