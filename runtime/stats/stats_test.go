package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
)

// lab is a machine with one running pod, one that has ended, and a container of another program.
type lab struct {
	runtimeapi.RuntimeServiceClient

	now     time.Time
	cpu     uint64
	fails   error
	calls   int
	walks   int
	network bool
	// processes are the cgroups of processes, and runtime is the process of the runtime.
	processes map[int]string
	runtime   int
}

func (l *lab) ListContainers(
	context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption,
) (*runtimeapi.ListContainersResponse, error) {
	l.calls++
	container := func(uid, name, id string, created time.Time) *runtimeapi.Container {
		return &runtimeapi.Container{
			Id: id, Metadata: &runtimeapi.ContainerMetadata{Name: name}, CreatedAt: created.UnixNano(),
			Image: &runtimeapi.ImageSpec{Image: "image:1"}, Labels: map[string]string{criconfig.LabelPodUID: uid},
		}
	}
	begun := time.Unix(1000, 0)
	return &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{
		container("u1", "web", "old", begun.Add(-time.Minute)), container("u1", "web", "c1", begun),
		container("u1", "log", "c2", begun.Add(time.Second)), container("foreign", "x", "c9", begun),
	}}, l.fails
}

func (*lab) ListContainerStats(
	context.Context, *runtimeapi.ListContainerStatsRequest, ...grpc.CallOption,
) (*runtimeapi.ListContainerStatsResponse, error) {
	return &runtimeapi.ListContainerStatsResponse{Stats: []*runtimeapi.ContainerStats{{
		Attributes:    &runtimeapi.ContainerAttributes{Id: "c1"},
		WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: 4096}},
	}}}, nil
}

func (*lab) ListPodSandbox(
	context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption,
) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{
		{Id: "s1", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "u1"}, CreatedAt: time.Unix(999, 0).UnixNano()},
	}}, nil
}

// Usage gives each cgroup its own numbers.
func (l *lab) Usage(name string) (cgroup.Usage, error) {
	base := uint64(100)
	switch {
	case name == "/":
		base = 1000
	case strings.HasSuffix(name, "kubepods"):
		base = 500
	case name == "/agent.service":
		base = 40
	case name == "/runtime.service":
		base = 60
	case strings.HasSuffix(name, "/cri-containerd-c1.scope"):
		return cgroup.Usage{
			CPU: new(uint64(7e9) + l.cpu), Memory: new(uint64(70)), WorkingSet: new(uint64(60)), RSS: new(uint64(50)),
			Limit: new(uint64(160)), CPUPressure: &cgroup.Pressure{Full: cgroup.Stall{Total: 3e6}},
		}, nil
	case !strings.HasSuffix(name, "burstable/podu1"):
		return cgroup.Usage{}, nil
	}
	return cgroup.Usage{CPU: new(base*1e9 + l.cpu), Memory: new(base), WorkingSet: new(base / 2), Swap: new(uint64(3))}, nil
}

func (l *lab) Of(pid int) (cgroup.Group, error) {
	name := l.processes[pid]
	if name == "" {
		return cgroup.Group{}, errors.New("gone")
	}
	return cgroup.Group{Name: name, Changed: time.Unix(700, 0)}, nil
}

// Children lacks the second container, which has just ended.
func (*lab) Children(name string) ([]string, error) {
	if !strings.HasSuffix(name, "burstable/podu1") {
		return nil, errors.New("gone")
	}
	return []string{name + "/s1", name + "/cri-containerd-c1.scope"}, nil
}

func (l *lab) Details(name string) (cgroup.Details, error) {
	u, err := l.Usage(name)
	return cgroup.Details{
		Usage: u, User: new(uint64(2e9)), Quota: new(uint64(50000)), Period: new(uint64(100000)), Periods: new(uint64(7)),
		Disks: []cgroup.DiskIO{{Device: "0:999", ReadBytes: 4096}},
	}, err
}

// Pids returns a process whose network is that of the test.
func (l *lab) Pids(string) ([]int, error) {
	if !l.network {
		return nil, nil
	}
	return []int{os.Getpid()}, nil
}

func newMeter(l *lab) *Meter {
	pod := func(uid types.UID, name, owner string) *podspec.Desired {
		return podspec.New(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: uid}}, owner, uid)
	}
	return New(Settings{
		Runtime: l, Groups: l, NodeName: "n", Booted: time.Unix(500, 0), Identity: machine.Identity{BootID: "b"}, Started: time.Unix(900, 0),
		RuntimeProcess: func(context.Context) (int, error) { return l.runtime, l.fails },
		Node: func() criconfig.Node {
			return criconfig.Node{Allocatable: v1.ResourceList{v1.ResourceMemory: resource.MustParse("2k")}}
		},
		Pods: func(context.Context) ([]*podspec.Desired, error) {
			return []*podspec.Desired{pod("u1", "web", "x"), pod("u2", "ended", "x")}, nil
		},
		APIName: func(d *podspec.Desired) string { return d.Pod.Name + "-n" },
		Disks: func(context.Context) Disks {
			return Disks{
				State:  FileSystem{Bytes: 100, UsedBytes: 60, FreeBytes: 40, Inodes: 10, FreeInodes: 4},
				Images: FileSystem{Bytes: 50}, ImageBytes: 20,
			}
		},
		Files: func(context.Context, *v1.Pod, []string) Files {
			l.walks++
			return Files{
				Volumes: []VolumeFiles{
					{Name: "data", On: FileSystem{Bytes: 100}, Used: Used{10, 1}, Local: true},
					{Name: "memory", On: FileSystem{Bytes: 30}, Used: Used{7, 1}},
				},
				Logs: map[string]Used{"web": {100, 1}}, Others: Used{1000, 1},
			}
		},
		Now: func() time.Time { return l.now },
	})
}

// TestSummary checks the measured values, that a measurement is used for ten seconds, and the usage between two.
func TestSummary(t *testing.T) {
	l := &lab{now: time.Unix(2000, 0), network: true}
	m := newMeter(l)
	s, err := m.Summary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := &s.Node; n.NodeName != "n" || *n.CPU.UsageCoreNanoSeconds != 1000e9 || n.CPU.UsageNanoCores != nil ||
		*n.Memory.WorkingSetBytes != 500 || *n.Memory.AvailableBytes != 1500 || *n.Fs.UsedBytes != 60 ||
		*n.Runtime.ImageFs.UsedBytes != 20 || n.SystemContainers[0].Name != "pods" || n.Rlimit == nil {
		t.Errorf("%+v", n)
	}
	if len(s.Pods) != 1 || len(s.Pods[0].Containers) != 2 {
		t.Fatalf("%+v", s.Pods)
	}
	pod := &s.Pods[0]
	if pod.PodRef.Name != "web-n" || *pod.Memory.UsageBytes != 100 || pod.Network == nil ||
		!pod.StartTime.Equal(&metav1.Time{Time: time.Unix(999, 0)}) || *pod.Swap.SwapUsageBytes != 3 ||
		*pod.ProcessStats.ProcessCount != 1 {
		t.Errorf("%+v", pod)
	}
	if gone, web := &pod.Containers[0], &pod.Containers[1]; gone.Name != "log" || gone.CPU != nil ||
		!web.StartTime.Equal(&metav1.Time{Time: time.Unix(1000, 0)}) || *web.Memory.AvailableBytes != 100 ||
		*web.Rootfs.UsedBytes != 4096 || web.CPU.PSI.Full.Total != 3e6 || *web.Logs.UsedBytes != 100 || gone.Logs != nil {
		t.Errorf("%+v", pod.Containers)
	}
	if v := pod.VolumeStats; len(v) != 2 || *v[1].UsedBytes != 7 || *v[1].CapacityBytes != 30 ||
		*pod.EphemeralStorage.UsedBytes != 4096+100+1000+10 || *pod.EphemeralStorage.CapacityBytes != 100 {
		t.Errorf("%+v %+v", v, pod.EphemeralStorage)
	}
	if short, _ := m.CPUAndMemory(t.Context()); short.Pods[0].EphemeralStorage != nil || short.Pods[0].Containers[1].Logs != nil {
		t.Errorf("files in %+v", short.Pods[0])
	}
	l.now, l.cpu, l.network = l.now.Add(9*time.Second), 4e9, false
	if _, err = m.Summary(t.Context()); err != nil || l.calls != 1 {
		t.Errorf("measured again after 9 s")
	}
	l.now = l.now.Add(time.Second)
	if s, err = m.Summary(t.Context()); err != nil || *s.Node.CPU.UsageNanoCores != 4e8 ||
		*s.Pods[0].Containers[1].CPU.UsageNanoCores != 4e8 || s.Pods[0].Network != nil || l.walks != 1 {
		t.Errorf("%+v %v", s, err)
	}
	l.now = l.now.Add(time.Minute)
	if _, err = m.Summary(t.Context()); err != nil || l.walks != 2 {
		t.Errorf("%d walks after a minute, %v", l.walks, err)
	}
	l.now, l.fails = l.now.Add(time.Minute), errors.New("down")
	if _, err = m.Summary(t.Context()); err == nil {
		t.Error("a runtime that fails")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	m.slot <- struct{}{}
	if _, err = m.Summary(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that goes: %v", err)
	}
}

// TestMetrics checks names, labels and values of both sets of metrics.
func TestMetrics(t *testing.T) {
	l := &lab{now: time.Unix(2000, 0), network: true}
	m := newMeter(l)
	get := func(h http.Handler) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if w.Code != http.StatusOK {
			t.Errorf("code %d", w.Code)
		}
		return w.Body.String()
	}
	expect := func(text string, lines ...string) {
		t.Helper()
		for _, want := range lines {
			if !strings.Contains(text, "\n"+want+"\n") {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	expect(get(m.ResourceMetrics()),
		"node_cpu_usage_seconds_total 1000 2000000",
		"node_memory_working_set_bytes 500 2000000",
		`pod_memory_working_set_bytes{namespace="a",pod="web-n"} 50 2000000`,
		`container_cpu_usage_seconds_total{container="web",namespace="a",pod="web-n"} 7 2000000`,
		`container_start_time_seconds{container="log",namespace="a",pod="web-n"} 1001`,
		"resource_scrape_error 0")
	const (
		c1  = `id="/kubepods/burstable/podu1/cri-containerd-c1.scope",image="image:1",name="c1",namespace="a",pod="web-n"}`
		pod = `container="",id="/kubepods/burstable/podu1",image="",name="",namespace="a",pod="web-n"}`
	)
	expect(get(m.ContainerMetrics()),
		`machine_memory_bytes{boot_id="b",machine_id="",system_uuid=""} 2000`,
		`container_memory_rss{container="web",`+c1+` 50 2000000`,
		`container_memory_usage_bytes{`+pod+` 100 2000000`,
		`container_cpu_usage_seconds_total{container="web",cpu="total",`+c1+` 7 2000000`,
		`container_cpu_cfs_periods_total{container="web",`+c1+` 7 2000000`,
		`container_spec_cpu_quota{container="web",`+c1+` 50000`,
		`container_spec_memory_limit_bytes{container="web",`+c1+` 160`,
		`container_spec_memory_limit_bytes{`+pod+` 0`,
		`container_pressure_cpu_stalled_seconds_total{container="web",`+c1+` 3 2000000`,
		`container_fs_reads_bytes_total{container="web",device="",`+c1+` 4096 2000000`,
		`container_start_time_seconds{`+pod+` 999`,
		"container_scrape_error 0")
	if text := get(m.ContainerMetrics()); strings.Contains(text, `container="log"`) {
		t.Error("a container without a cgroup")
	}
	l.now, l.fails = l.now.Add(time.Minute), errors.New("down")
	if text := get(m.ResourceMetrics()); !strings.HasSuffix(text, "\nresource_scrape_error 1\n") || strings.Contains(text, "cpu") {
		t.Error(text)
	}
}

// TestSystemContainers checks that the agent and the runtime are listed if each has a cgroup of its own.
func TestSystemContainers(t *testing.T) {
	const own, runtime = "/agent.service", "/runtime.service"
	for name, c := range map[string]struct {
		processes map[int]string
		runtime   int
		want      string
	}{
		"with systemd":            {map[int]string{os.Getpid(): own, 7: runtime}, 7, "kubelet:40@900 runtime:60@700 pods:500@900 "},
		"one cgroup for both":     {map[int]string{os.Getpid(): own, 7: own}, 7, "pods:500@900 "},
		"an ended runtime":        {map[int]string{os.Getpid(): own}, 7, "kubelet:40@900 pods:500@900 "},
		"systemd listens":         {map[int]string{os.Getpid(): own, 1: runtime}, 1, "kubelet:40@900 pods:500@900 "},
		"an agent without a unit": {map[int]string{7: runtime}, 7, "runtime:60@700 pods:500@900 "},
		"a cgroup without counts": {map[int]string{os.Getpid(): "/other", 7: runtime}, 7, "runtime:60@700 pods:500@900 "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeter(&lab{now: time.Unix(2000, 0), processes: c.processes, runtime: c.runtime})
			s, err := m.Summary(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, one := range s.Node.SystemContainers {
				fmt.Fprintf(&got, "%s:%d@%d ", one.Name, *one.Memory.UsageBytes, one.StartTime.Unix())
			}
			if got.String() != c.want {
				t.Errorf("%q, not %q", got.String(), c.want)
			}
		})
	}
}

// TestInterfaces checks the kernel's tables.
func TestInterfaces(t *testing.T) {
	table := `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0
  eth0: 7 1 2 0 0 0 0 0 9 1 4 0 0 0 0 0
veth12: 7 1 2 0 0 0 0 0 9 1 4 0 0 0 0 0
  bad0: x
`
	s := networkOf(parseDevices(table), metav1.Time{})
	text, err := json.Marshal(s.Interfaces)
	want := `[{"name":"eth0","rxBytes":7,"rxErrors":2,"txBytes":9,"txErrors":4}]`
	if err != nil || string(text) != want || s.Name != "eth0" || *s.RxBytes != 7 {
		t.Errorf("%s %+v %v", text, s, err)
	}
	renamed := strings.ReplaceAll(table, "eth0", "ens3")
	if s = networkOf(parseDevices(renamed), metav1.Time{}); s.Name != "" || s.RxBytes != nil || len(s.Interfaces) != 1 {
		t.Errorf("without eth0: %+v", s)
	}
	if s = networkOf(nil, metav1.Time{}); s != nil {
		t.Errorf("without interfaces: %+v", s)
	}
}

// TestSlowFiles checks that a request does not wait long for files, that one walk runs at a time, and that the next
// request gets its result.
func TestSlowFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, walks := &lab{now: time.Unix(2000, 0)}, 0
		m := newMeter(l)
		m.Files = func(context.Context, *v1.Pod, []string) Files {
			walks++
			time.Sleep(10 * time.Second)
			return Files{Others: Used{1, 1}}
		}
		for range 2 {
			began := time.Now()
			if s, err := m.Summary(t.Context()); err != nil || s.Pods[0].EphemeralStorage != nil ||
				time.Since(began) != filesPatience {
				t.Errorf("%+v %v after %s", s, err, time.Since(began))
			}
		}
		time.Sleep(time.Minute)
		if s, err := m.Summary(t.Context()); err != nil || s.Pods[0].EphemeralStorage == nil || walks != 1 {
			t.Errorf("%+v %v, %d walks", s, err, walks)
		}
	})
}
