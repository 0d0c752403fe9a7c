package observe

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// TestImagesOfAPod checks that each image is looked up once. An image that is absent, or whose name is invalid in every
// runtime, is left out and does not affect others.
func TestImagesOfAPod(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"+
			"  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}, {name: c, image: 'i:2'}]\n")
	for name, c := range map[string]struct {
		change func()
		asked  int
	}{"one that is absent": {func() {}, 2}, "one without a proper name": {func() { d.Pod.Spec.Containers[2].Image = "Not A Name" }, 1}} {
		c.change()
		l.reset()
		found, err := l.observer.observeImages(t.Context(), d, podspec.ImageNames(d.Pod))
		if err != nil || len(found) != 1 || found[0].ID != "sha256:i:1" || found[0].Reference == "" || l.count("ImageStatus") > c.asked {
			t.Errorf("%s: %+v after %d questions, %v", name, found, l.count("ImageStatus"), err)
		}
	}
	if found, err := l.observer.observeImages(t.Context(), nil, nil); found != nil || err != nil {
		t.Errorf("of a pod that is deleted: %v, %v", found, err)
	}
}

// TestSnapshotHasAllImages checks that all images of the runtime are listed beside those of the pod, each name once.
func TestSnapshotHasAllImages(t *testing.T) {
	l := newLab(t, "i:1", "docker.io/library/z:1")
	s, err := l.observer.Snapshot(t.Context(), l.pod("web"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, image := range s.Images {
		if seen[image.Reference] || image.ID == "" {
			t.Errorf("%+v again", image)
		}
		seen[image.Reference] = true
	}
	if !seen["i:1"] || !seen["docker.io/library/z:1"] {
		t.Errorf("images %v", s.Images)
	}
	l.server.Fail(runtimetest.Fault{Method: "ListImages", Times: 1, Err: errors.New("injected failure")})
	if _, err := l.observer.Snapshot(t.Context(), l.pod("web")); err == nil || !strings.Contains(err.Error(), "listing images") {
		t.Errorf("error %v", err)
	}
}

// TestStateOnDisk checks volumes, the complete cgroup, and logs of containers without a record. They are not read
// for a deletion.
func TestStateOnDisk(t *testing.T) {
	l := newLab(t, "i:1")
	mounts := "image: 'i:1', volumeMounts: [{name: v, mountPath: /v}, {name: w, mountPath: /w}]"
	d := loadPod(t, strings.Replace(podText("web"), "image: 'i:1'", mounts, 1)+
		"  volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {}}, {name: unused, emptyDir: {}}]\n")
	ref, kept := model.RefOf(d.Pod), l.layout.Pod(d.Pod.UID)
	look := func() *snapshot.Pod {
		t.Helper()
		s, err := l.observer.Observe(t.Context(), ref, d)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := look(); *s.Cgroup || s.Volumes["v"].Prepared || len(s.Volumes) != 2 || len(s.LogAttempts) > 0 {
		t.Errorf("before anything is there: cgroup %t, volumes %v, logs %v", *s.Cgroup, s.Volumes, s.LogAttempts)
	}
	logs := kept.Logs("default", "web")
	log, err := logs.File("a", 4)
	cgroupName := criconfig.CgroupParent(d.Pod, l.host.Node())
	volumes := volume.Context{Pod: l.observer.world.Layout.Pod(d.Pod.UID), Desired: d}
	err = errors.Join(err,
		logs.Make("a"),
		os.WriteFile(log, nil, 0o600),
		kept.CgroupMark().Set(),
		l.cgroups.Ensure(cgroupName, cgroup.Resources{}),
		volume.Prepare(t.Context(), volumes, "v"))
	if err != nil {
		t.Fatal(err)
	}
	if s := look(); *s.Cgroup || !s.Volumes["v"].Prepared || s.Volumes["w"].Prepared || s.LogAttempts["a"] != 4 {
		t.Errorf("a cgroup that is not complete: %t, volumes %v, logs %v", *s.Cgroup, s.Volumes, s.LogAttempts)
	}
	if err = kept.CgroupMark().Clear(); err != nil {
		t.Fatal(err)
	}
	if s := look(); !*s.Cgroup {
		t.Error("the cgroup is not seen")
	}
	s, err := l.observer.Observe(t.Context(), ref, nil)
	if err != nil || s.Cgroup != nil || s.Volumes != nil || s.LogAttempts != nil || s.Images != nil {
		t.Errorf("of a pod that is deleted: %+v, %v", s, err)
	}
}

// TestAttemptsInFlight checks that a started record of the attempt settles it with the recorded resources. A
// container without a record was not created, and one that was only created is created again.
func TestAttemptsInFlight(t *testing.T) {
	cpu := func(n string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse(n)}}
	}
	two := cpu("2")
	j := &state.Checkpoint{
		Memory: model.Memory{
			Actuated: &model.Actuated{Containers: map[string]v1.ResourceRequirements{"a": cpu("1"), "b": cpu("1")}},
		},
		InFlight: map[string]state.InFlight{
			"a":          {Attempt: 1, Resources: &two},
			"b":          {Attempt: 1, Resources: &two},
			state.ThePod: {Attempt: 3, Resources: &two},
		},
	}
	record := func(name string, attempt uint32, state runtimeapi.ContainerState) snapshot.Container {
		return snapshot.Container{Status: &runtimeapi.ContainerStatus{
			Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}, State: state,
		}}
	}
	const running, created = runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_CREATED
	resolveInFlight(&snapshot.Pod{
		Checkpoint: j,
		Containers: []snapshot.Container{
			record("a", 0, running),
			record("a", 1, running),
			record("b", 0, running),
			record("b", 1, created),
		},
		Sandboxes: []*runtimeapi.PodSandboxStatus{{Metadata: &runtimeapi.PodSandboxMetadata{Attempt: 3}}},
	})
	want := &model.Actuated{Containers: map[string]v1.ResourceRequirements{"a": cpu("2"), "b": cpu("1")}, Pod: &two}
	if diff := cmp.Diff(want, j.Actuated); diff != "" || j.InFlight != nil {
		t.Errorf("still to be created: %v; in effect (-want +got)\n%s", j.InFlight, diff)
	}
}

// TestSecretsStayOut checks that output of the runtime and of containers lacks the known values of Secrets. If they are
// unknown, the output of podctl's own pods is withheld.
func TestSecretsStayOut(t *testing.T) {
	for name, text := range map[string]string{"known": secretPod(), "of an earlier manifest": podText("web")} {
		l := newLab(t, "i:1")
		d := loadPod(t, text)
		ref := model.RefOf(d.Pod)
		sandbox := l.sandbox(ref, 0)
		l.container(ref, sandbox, "a", 0)
		l.server.SetNetwork("the plugin failed with correct horse")
		l.remember(loadPod(t, secretPod()), &state.Checkpoint{
			Memory: model.Memory{StartErrors: map[string]model.StartError{"a": {Message: "failed with correct horse"}}},
		})
		s, err := l.observer.Observe(t.Context(), ref, d)
		if err != nil {
			t.Fatal(err)
		}
		observed := s.Observed(ref, d)
		for what, output := range map[string]string{
			"network":     observed.Runtime.NetworkMessage,
			"start error": observed.Memory.StartErrors["a"].Message,
		} {
			if strings.Contains(output, "correct horse") || !strings.Contains(output, "failed with") {
				t.Errorf("%s, %s: %q", name, what, output)
			}
		}
	}
}

// TestInputOfAPlan checks the pod's name, also without a manifest, the time and the options.
func TestInputOfAPlan(t *testing.T) {
	l := newLab(t, "i:1")
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	in, s, err := l.observer.Input(t.Context(), ref, d, plan.Options{IgnoreBackoff: true})
	if err != nil || in.Pod != ref || in.Desired != d || !in.Now.Equal(l.clock.Now()) || !in.Options.IgnoreBackoff || s.Pod != ref {
		t.Errorf("%+v, %v", in, err)
	}
	if in, _, err = l.observer.Input(t.Context(), ref, nil, plan.Options{}); err != nil || in.Pod != ref || in.Desired != nil {
		t.Errorf("of a pod that is deleted: %+v, %v", in, err)
	}
	l.server.Fail(runtimetest.Fault{Method: "ListPodSandbox", Times: 1, Err: status.Error(codes.Internal, "injected failure")})
	if _, _, err = l.observer.Input(t.Context(), ref, d, plan.Options{}); err == nil {
		t.Error("a failed observation is the input of a plan")
	}
}

// TestKeysOfDigests checks that without a key of the machine the process has one fixed key, and that a kept key belongs
// to the machine.
func TestKeysOfDigests(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	key := func(d *Digests) string {
		t.Helper()
		k, err := d.Key()
		if err != nil {
			t.Fatal(err)
		}
		return k.ID()
	}
	d := NewDigests(layout)
	first := key(d)
	if first == "" || key(d) != first || key(NewDigests(layout)) == first {
		t.Errorf("the keys are %s and %s", first, key(d))
	}
	if err := d.Keep(); err != nil {
		t.Fatal(err)
	}
	kept := key(d)
	if kept == first || key(NewDigests(layout)) != kept {
		t.Errorf("kept is %s, another process has %s", kept, key(NewDigests(layout)))
	}
	if err := d.Keep(); err != nil || key(d) != kept {
		t.Errorf("kept again: %v", err)
	}
	if err := os.WriteFile(layout.DigestKey().Path(), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewDigests(layout).Keep(); !errors.Is(err, state.ErrDamaged) {
		t.Errorf("a damaged key: %v", err)
	}
	l := newLab(t)
	l.observer.digests = NewDigests(layout)
	if _, err := l.observer.Observe(t.Context(), model.RefOf(l.pod("web").Pod), l.pod("web")); !errors.Is(err, state.ErrDamaged) {
		t.Errorf("observation with a damaged key: %v", err)
	}
}

// TestManifestsGetTheKey checks that digests of the desired and the applied manifest use the key of the machine.
func TestManifestsGetTheKey(t *testing.T) {
	text := secretPod()
	l := newLab(t, "i:1")
	if err := l.observer.digests.Keep(); err != nil {
		t.Fatal(err)
	}
	hash := func(d *podspec.Desired) string { return spechash.Container(d, &d.Pod.Spec.Containers[0]) }
	d := loadPod(t, text)
	l.remember(loadPod(t, text), &state.Checkpoint{})
	s, err := l.observer.Observe(t.Context(), model.RefOf(d.Pod), d)
	if err != nil {
		t.Fatal(err)
	}
	if digest.Compare(hash(d), hash(s.Checkpoint.Applied)) != digest.Same {
		t.Errorf("%s and %s", hash(d), hash(s.Checkpoint.Applied))
	}
}

// TestRebootEndsDelays checks that a snapshot has no delays that were recorded before the machine started again.
func TestRebootEndsDelays(t *testing.T) {
	l := newLab(t)
	boot := "1"
	l.host.from.BootID = func() string { return boot }
	pod := l.pod("web")
	ref := model.RefOf(pod.Pod)
	delays := func() map[string]model.Backoff {
		t.Helper()
		s, err := l.observer.Observe(t.Context(), ref, pod)
		if err != nil {
			t.Fatal(err)
		}
		if s.Checkpoint.BootID != boot {
			t.Errorf("boot %q, want %q", s.Checkpoint.BootID, boot)
		}
		return s.Checkpoint.Backoffs
	}
	c := &state.Checkpoint{Memory: model.Memory{
		Applied: pod, BootID: boot, Backoffs: map[string]model.Backoff{"a": {Duration: time.Minute}},
	}}
	if err := l.layout.Pod(ref.UID).Checkpoint().Write(c); err != nil {
		t.Fatal(err)
	}
	if d := delays(); d["a"].Duration != time.Minute {
		t.Errorf("delays of this boot: %v", d)
	}
	boot = "2"
	if d := delays(); d == nil || len(d) != 0 {
		t.Errorf("delays of an earlier boot: %v", d)
	}
}
