package plan

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// loader loads the first pod of a manifest.
type loader func(tb testing.TB, text string) *podspec.Desired

// runsEdited returns a world in which a pod of a ReplicaSet runs as applied, and its manifest has a change since.
func runsEdited(t *testing.T, load loader, change func(*podspec.Desired)) *modeltest.World {
	t.Helper()
	newest := func() *podspec.Desired {
		d := load(t, podspectest.WithEnv)
		d.Pod.OwnerReferences = []metav1.OwnerReference{{Kind: podspec.KindReplicaSet, Name: "web", Controller: new(true)}}
		return d
	}
	w := modeltest.New(newest()).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "app", 0, model.Running)
	w.Memory.Applied = newest()
	w.Desired = newest()
	change(w.Desired)
	return w
}

// TestFeaturesOffInCluster checks that what restarts or changes other pods does not touch a running pod of the API
// server, and that the plan still says when it takes effect.
func TestFeaturesOffInCluster(t *testing.T) {
	const restarts = "PrepareVolume CheckContainer StopContainer StartContainer"
	for name, c := range map[string]struct {
		change       func(*podspec.Desired)
		other, inAPI string
	}{
		"nothing": {func(*podspec.Desired) {}, "", ""},
		"another value of a ConfigMap": {
			func(d *podspec.Desired) { d.Objects.ConfigMaps["settings"].Data["mode"] = "slow" },
			restarts, "| configMaps.settings.data.mode nextStart",
		},
		"a value of a ConfigMap that is not used": {
			func(d *podspec.Desired) { d.Objects.ConfigMaps["settings"].Data["level"] = "4" },
			"| configMaps.settings.data.level none", "| configMaps.settings.data.level none",
		},
		"another value of a Secret": {
			func(d *podspec.Desired) { d.Objects.Secrets["login"].Data["password"] = []byte("hunter3") },
			restarts, "| secrets.login.data.password nextStart",
		},
		"a missing ConfigMap": {
			func(d *podspec.Desired) { delete(d.Objects.ConfigMaps, "settings") },
			"CreateContainerConfigError| configMaps.settings.data.level held configMaps.settings.data.mode held",
			"| configMaps.settings.data.level nextStart configMaps.settings.data.mode nextStart",
		},
		"a restart of its workload": {
			func(d *podspec.Desired) {
				d.Pod.Annotations = map[string]string{podspec.AnnotationRestartedAt: "2026-05-04T11:30:00Z"}
			},
			"PrepareVolume CheckContainer StopContainer StopSandbox RunSandbox StartContainer",
			"| metadata.annotations.kubectl.kubernetes.io/restartedAt live",
		},
		"a restart of its workload later": {
			func(d *podspec.Desired) {
				d.Pod.Annotations = map[string]string{podspec.AnnotationRestartedAt: "2026-05-04T13:30:00Z"}
			},
			"| metadata.annotations.kubectl.kubernetes.io/restartedAt live", "| metadata.annotations.kubectl.kubernetes.io/restartedAt live",
		},
		"another write of the object": {
			func(d *podspec.Desired) { d.Pod.Generation, d.Pod.ResourceVersion = 2, "7" },
			"| metadata.generation none metadata.resourceVersion none", "",
		},
		"another label, and so another generation": {
			func(d *podspec.Desired) { d.Pod.Labels, d.Pod.Generation = map[string]string{"a": "b"}, 2 },
			"| metadata.generation none metadata.labels.a live", "| metadata.labels.a live",
		},
		"another image": {
			func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "registry.local/app:2" },
			restarts, restarts,
		},
	} {
		for _, load := range []loader{podspectest.Desired, podspectest.FromAPI} {
			w := runsEdited(t, load, c.change)
			p, fromAPI := makePlan(w), w.Desired.FromCluster()
			got := result(p)
			if len(p.Record) > 0 {
				got += "| "
			}
			for _, e := range p.Record {
				got += e.Path + " " + string(e.TakesEffect) + " "
			}
			if want := map[bool]string{false: c.other, true: c.inAPI}[fromAPI]; strings.TrimSpace(got) != want {
				t.Errorf("%s, of the API server %t: got %q, want %q", name, fromAPI, strings.TrimSpace(got), want)
			}
			if fromAPI && (!p.ChangesAt.IsZero() || len(p.Steps) == 0 && (!p.Complete || len(p.Holds) > 0)) {
				t.Errorf("%s: holds %v, changes at %s", name, p.Holds, p.ChangesAt)
			}
		}
	}
}

// withClaim returns a pod with a claim of devices, owned by the API server.
func withClaim(t *testing.T) *podspec.Desired {
	t.Helper()
	d := podspectest.FromAPI(t, podspectest.Minimal+
		"    resources: {requests: {cpu: 1}}\n  volumes: [{name: v, emptyDir: {}}]\n")
	d.Pod.Spec.Volumes[0].EmptyDir = nil
	return d
}

// TestUnsupportedInCluster checks that a new pod of the API server with a field that podctl does not support is rejected
// for good, with or without admission. One that runs stays.
func TestUnsupportedInCluster(t *testing.T) {
	const message = "Pod uses fields that podctl does not support: " +
		"spec.volumes[0]: This kind of volume is not known to this version of podctl"
	b := newBench(withClaim(t))
	for _, how := range []*Admission{b.how, nil} {
		b.how = how
		p := Make(b.input())
		if result(p) != "UnsupportedPodFeature rejected" || p.Rejection.Message != message || p.Rejection.At != modeltest.Noon() {
			t.Errorf("%s: %+v", result(p), p.Rejection)
		}
	}
	b.how = &Admission{Settings: admission.Settings{MaxPods: 1}, Final: false}
	edited := withClaim(t)
	edited.Pod.Spec.Volumes, edited.Pod.Spec.Containers[0].Image = nil, "i:2"
	rejection := &model.Rejection{Reason: model.UnsupportedPodFeature, Message: message, Settings: "of another run"}
	b.Memory.Applied, b.Memory.Rejection, b.Desired = withClaim(t), rejection, edited
	if p := Make(b.input()); result(p) != "UnsupportedPodFeature rejected" || p.Rejection != rejection {
		t.Errorf("after an edit: %s", result(p))
	}
	running := newBench(withClaim(t)).runs(nil)
	running.Containers[0].Name = "app"
	if p := Make(running.input()); p.Rejection != nil || p.KillPod {
		t.Errorf("one that runs: %s", result(p))
	}
	earlier := newBench(sized(t, "web", "3"))
	huge := withClaim(t)
	huge.Pod.Spec.Containers[0].Resources.Requests["cpu"] = *earlier.Capacity.Cpu()
	if earlier.how.First = []*podspec.Desired{huge}; result(Make(earlier.input())) != starts {
		t.Errorf("a rejected pod uses resources: %s", result(Make(earlier.input())))
	}
}

// TestNotesInCluster checks that a plan notes fields of a pod of the API server without effect.
func TestNotesInCluster(t *testing.T) {
	const want = "spec.securityContext.windowsOptions has no effect: As with a kubelet"
	for _, of := range []bool{true, false} {
		d := withClaim(t)
		if !of {
			d.Owner = ""
		}
		d.Pod.Spec.Volumes = nil
		options := &v1.WindowsSecurityContextOptions{RunAsUserName: new("a")}
		d.Pod.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: options}
		notes := strings.Join(makePlan(modeltest.New(d)).Notes, "\n")
		if strings.Contains(notes, want) != of {
			t.Errorf("from the API server %t: %s", of, notes)
		}
	}
}

// TestEvictedInCluster checks that neither an edit nor a restart starts an evicted pod of the API server again.
func TestEvictedInCluster(t *testing.T) {
	of := func(image string) *podspec.Desired {
		d := podspectest.FromAPI(t, podspectest.Minimal)
		d.Pod.Spec.Containers[0].Image = image
		return d
	}
	done := &model.Eviction{Signal: "pid.available", At: modeltest.Noon().Add(-time.Minute), Done: true}
	for name, set := range map[string]func(*Input){
		"an edit":   func(in *Input) { in.Desired = of("i:2") },
		"a restart": func(in *Input) { in.Options.Restart = []string{"app"} },
	} {
		in := newBench(of("i:1")).input()
		gone(of("i:1"), done)(in)
		set(in)
		if p := Make(in); result(p) != "Evicted" || p.Eviction != done {
			t.Errorf("%s: %s", name, result(p))
		}
	}
}
