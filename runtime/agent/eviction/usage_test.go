package eviction

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// meterLab is a Meter with a runtime in memory and a state directory.
type meterLab struct {
	*Meter
	server *runtimetest.Server
	layout state.Layout
}

func newMeterLab(t *testing.T) *meterLab {
	t.Helper()
	server, _, endpoint := runtimetest.Start(t, "i:1")
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &meterLab{server: server, layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}}
	disks := &Machine{
		NodeDirs: []string{l.layout.Root}, ImageFs: func(context.Context) (string, error) { return l.layout.Root, nil },
	}
	l.Meter = NewMeter(client, l.layout, func() criconfig.Node { return criconfig.Node{} }, disks)
	return l
}

// run starts the containers of a pod.
func (l *meterLab) run(t *testing.T, pod *v1.Pod) {
	t.Helper()
	meta := &runtimeapi.PodSandboxMetadata{Name: pod.Name, Uid: string(pod.UID), Namespace: pod.Namespace}
	config := &runtimeapi.PodSandboxConfig{Metadata: meta}
	sandbox, err := l.client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		created, err := l.client.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
			PodSandboxId: sandbox.GetPodSandboxId(), SandboxConfig: config, Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "i:1"},
				Labels: map[string]string{criconfig.LabelPodUID: string(pod.UID), criconfig.LabelContainerName: name},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		start := &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()}
		if _, err = l.client.StartContainer(t.Context(), start); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *meterLab) write(t *testing.T, size int, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, make([]byte, size), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// TestMeter checks which parts of a pod are measured: for its limits, and for the order of evictions.
func TestMeter(t *testing.T) {
	const mib = 1 << 20
	l := newMeterLab(t)
	pod := limitedPod([]string{"1Gi", ""}, []string{"1Gi", ""})
	pod.Name, pod.Namespace, pod.UID = "web", "a", "u1"
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "ended"})
	memory := &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: new(resource.MustParse("1Gi"))}
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		v1.Volume{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: memory}},
		v1.Volume{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}},
		v1.Volume{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}},
		v1.Volume{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}},
	)
	l.run(t, pod)
	other := limitedPod([]string{""}, nil)
	other.Name, other.Namespace, other.UID = "other", "a", "u2"
	l.run(t, other)
	missing := limitedPod(nil, []string{"1"})
	missing.UID = "u3"
	l.server.Write("c0", 10*mib)
	l.server.Write("ended", 100*mib)
	l.server.Exit("ended", 0)
	volumes := l.layout.Pod(pod.UID).Volumes()
	l.write(t, 1*mib, volumes, "kubernetes.io~empty-dir/v0/file")
	l.write(t, 2*mib, volumes, "kubernetes.io~empty-dir/v1/dir/file")
	l.write(t, 4*mib, volumes, "kubernetes.io~empty-dir/memory/file")
	l.write(t, 8*mib, volumes, "kubernetes.io~configmap/config/file")
	l.write(t, 16*mib, volumes, "kubernetes.io~secret/secret/file")
	l.write(t, 5000, l.layout.Pod(pod.UID).EtcHosts())
	logs, err := l.layout.Pod(pod.UID).Logs(pod.Namespace, pod.Name).Dir()
	if err != nil {
		t.Fatal(err)
	}
	l.write(t, 32*mib, logs, "c0/0.log")
	l.write(t, 64*mib, logs, "ended/0.log")
	l.write(t, 128*mib, logs, "c0/dir/file")

	whole, err := l.LimitedUsage(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	// Directories of volumes take at most 16 KiB each, the hosts file 8 KiB.
	isAbout := func(what string, got, want int64) {
		t.Helper()
		if got < want || got > want+64<<10 {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	isAbout("the limits of the pod", whole.storage(), (10+1+2+8+32)*mib+5000)
	isAbout("the limit of the container", whole.container("c0"), (10+32)*mib)
	isAbout("a volume in memory", whole.volume("memory"), 4*mib)
	if len(whole.Volumes) != 4 || len(whole.Containers) != 2 || whole.OwnImageFs {
		t.Errorf("%+v", whole)
	}
	ranked, err := l.DiskUsage(t.Context(), []*v1.Pod{pod, other, missing})
	if err != nil || len(ranked) != 2 {
		t.Fatalf("%v %v", ranked, err)
	}
	used := ranked[pod.UID].disk(NodeFsAvailable, &Measurement{})
	isAbout("the order of evictions", used.Bytes, whole.storage()-whole.Hosts.Bytes)
	if got := len(ranked[other.UID].Containers); got != 1 {
		t.Errorf("%d containers of the other pod", got)
	}
	quick, err := l.Usage(t.Context(), []*v1.Pod{pod})
	if err != nil || quick[pod.UID].Volumes != nil || quick[pod.UID].Containers[0].Logs != nil {
		t.Errorf("without files: %+v %v", quick, err)
	}
}

// TestMeterWithoutRuntime checks that a sizeLimit needs no runtime, also if the pod has other limits.
func TestMeterWithoutRuntime(t *testing.T) {
	l := newMeterLab(t)
	l.server.Close()
	pod := limitedPod(nil, []string{"1Ki"})
	pod.UID = "u1"
	l.write(t, 10<<10, l.layout.Pod(pod.UID).Volumes(), "kubernetes.io~empty-dir/v0/file")
	if used, err := l.LimitedUsage(t.Context(), pod); err != nil || exceeded(pod, used) == nil {
		t.Errorf("%+v %v", used, err)
	}
	pod.Spec.Containers = limitedPod([]string{"1Gi"}, nil).Spec.Containers
	l.disks.ImageFs = func(context.Context) (string, error) { return "", errors.New("down") }
	if used, err := l.LimitedUsage(t.Context(), pod); err == nil || exceeded(pod, used) == nil {
		t.Errorf("with a container's limit: %+v %v", used, err)
	}
}

// TestHostileVolumes checks names that cannot be paths, and volumes that containers have replaced.
func TestHostileVolumes(t *testing.T) {
	l := newMeterLab(t)
	outside := t.TempDir()
	l.write(t, 1<<20, outside, "file")
	for _, uid := range []types.UID{"u1", "../..", ""} {
		pod := limitedPod(nil, []string{"1", "1", "1"})
		pod.UID, pod.Spec.Volumes[1].Name, pod.Spec.Volumes[2].Name = uid, "../../../..", "/"
		dir := filepath.Join(l.layout.Pod("u1").Volumes(), "kubernetes.io~empty-dir")
		err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o750), os.Symlink(outside, filepath.Join(dir, "v0")))
		if err != nil {
			t.Fatal(err)
		}
		if used, err := l.LimitedUsage(t.Context(), pod); err != nil || exceeded(pod, used) != nil {
			t.Errorf("%s: %+v %v", uid, used, err)
		}
	}
}

// TestTurns checks that a walk that takes long lets others run, and that the end of the context ends all.
func TestTurns(t *testing.T) {
	walks := newTurns()
	ctx, cancel := context.WithCancel(t.Context())
	nothing := func(func() error) error { return nil }
	err := walks.run(ctx, func(yield func() error) error {
		ran := make(chan error, 1)
		go func() { ran <- walks.run(ctx, nothing) }()
		for len(ran) == 0 {
			if err := yield(); err != nil {
				return err
			}
		}
		cancel()
		return errors.Join(<-ran, yield())
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if err = walks.run(t.Context(), nothing); err != nil || len(walks) != 0 {
		t.Errorf("the turn is not free: %v", err)
	}
}
