package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// actuatedOf returns the record of a fully applied manifest.
func actuatedOf(w *modeltest.World) *model.Actuated {
	a := &model.Actuated{Containers: map[string]v1.ResourceRequirements{}, Pod: w.Desired.Pod.Spec.Resources}
	for _, ref := range podspec.Containers(w.Desired.Pod) {
		a.Containers[ref.Name] = ref.Resources
	}
	return a
}

// ladderPod returns a pod with the container x, as a sidecar or as a regular one.
func ladderPod(kind podspec.ContainerType, policy, fields string) string {
	x := "{name: x, image: i:1" + fields + "}"
	if kind == podspec.Sidecar {
		return modeltest.Pod(
			"  restartPolicy: " + policy + "\n  initContainers: [" + strings.TrimSuffix(x, "}") +
				", restartPolicy: Always}]\n  containers: [{name: app, image: i:1}]\n")
	}
	return modeltest.Pod("  restartPolicy: " + policy + "\n  containers: [" + x + ", {name: app, image: i:1}]\n")
}

// TestLadder checks the order of the checks of a running container: definition, requested restart, health, resources.
// It is the same for sidecars and regular containers.
func TestLadder(t *testing.T) {
	const probes = ", livenessProbe: {exec: {command: [a]}, periodSeconds: 10, failureThreshold: 3}"
	const limits = ", resources: {limits: {cpu: %q}}"
	passed := func(w *modeltest.World) { w.Probed("x-0-of-s0", model.Liveness, model.ProbeSuccess, 0) }
	failed := func(w *modeltest.World) { w.Probed("x-0-of-s0", model.Liveness, model.ProbeFailure, 0) }
	stale := func(w *modeltest.World) { w.Probed("x-0-of-s0", model.Liveness, model.ProbeFailure, time.Minute) }
	undecided := func(w *modeltest.World) { w.Probed("x-0-of-s0", model.Liveness, model.ProbeUnknown, 0) }
	for name, c := range map[string]struct {
		before, after string
		set           func(w *modeltest.World)
		opts          Options
		want          []string
		// sidecar is the result for a sidecar if it differs; nil means the same.
		sidecar []string
	}{
		"up to date": {"", "", nil, Options{}, []string{"keep x: Running"}, nil},
		"another command": {"", ", command: [b]", nil, Options{}, []string{
			"kill x-0-of-s0: SpecChanged its definition changed", "start x: SpecChanged, fresh",
		}, nil},
		"another command, and a restart": {"", ", command: [b]", nil, Options{Restart: []string{"x"}}, []string{
			"kill x-0-of-s0: SpecChanged its definition changed", "start x: SpecChanged, fresh",
		}, nil},
		"a restart": {probes, probes, failed, Options{Restart: []string{"x"}}, []string{
			"kill x-0-of-s0: RestartRequested a restart was requested", "start x: RestartRequested, fresh",
		}, nil},
		"a restart of another one": {"", "", nil, Options{Restart: []string{"app"}}, []string{"keep x: Running"}, nil},
		"its liveness failed": {probes, probes, failed, Options{}, []string{
			"kill x-0-of-s0: LivenessFailed liveness probe failed: refused", "start x: LivenessFailed",
		}, nil},
		"its liveness passed": {probes, probes, passed, Options{}, []string{"keep x: Running"}, nil},
		"stale failure":       {probes, probes, stale, Options{}, []string{"keep x: Running", "hold x: ProbeStale"}, nil},
		"and was probed since": {probes, probes, stale, Options{ProbedSince: modeltest.Noon().Add(-time.Hour)}, []string{
			"kill x-0-of-s0: LivenessFailed liveness probe failed: refused", "start x: LivenessFailed",
		}, nil},
		"more cpu": {fmt.Sprintf(limits, "1"), fmt.Sprintf(limits, "2"), nil, Options{}, []string{"update x, grows true"}, nil},
		"less cpu": {fmt.Sprintf(limits, "2"), fmt.Sprintf(limits, "1"), nil, Options{}, []string{"update x, grows false"}, nil},
		"less cpu, undecided": {
			probes + fmt.Sprintf(limits, "2"),
			probes + fmt.Sprintf(limits, "1"),
			undecided,
			Options{},
			[]string{"update x, grows false"},
			nil,
		},
		// A sidecar does not change while its health is unknown.
		"less cpu, not requested": {
			probes + fmt.Sprintf(limits, "2"),
			probes + fmt.Sprintf(limits, "1"),
			nil,
			Options{},
			[]string{"update x, grows false"},
			[]string{"keep x: Running"},
		},
		"less cpu, and it failed long ago": {
			probes + fmt.Sprintf(limits, "2"), probes + fmt.Sprintf(limits, "1"), stale,
			Options{},
			[]string{"update x, grows false", "hold x: ProbeStale"},
			[]string{"keep x: Running", "hold x: ProbeStale"},
		},
		"a policy that requires a restart": {
			", resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]" + fmt.Sprintf(limits, "1"),
			", resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]" + fmt.Sprintf(limits, "2"), nil,
			Options{},
			[]string{
				"kill x-0-of-s0: Resized resources.limits.cpu: 1 -> 2 (and 1 more); " +
					"its resizePolicy requires a restart",
				"start x: Resized, fresh",
			},
			nil,
		},
		"more cpu, and its liveness failed": {
			probes + fmt.Sprintf(limits, "1"), probes + fmt.Sprintf(limits, "2"), failed,
			Options{},
			[]string{
				"kill x-0-of-s0: LivenessFailed liveness probe failed: refused",
				"start x: LivenessFailed",
			},
			nil,
		},
	} {
		for _, kind := range []podspec.ContainerType{podspec.Regular, podspec.Sidecar} {
			sidecar := kind == podspec.Sidecar
			w := modeltest.New(modeltest.Load(t, ladderPod(kind, "Always", c.before))).
				Sandbox("s0", 0, model.SandboxReady).States("x=Running app=Running")
			w.Memory.Actuated = actuatedOf(w)
			if c.set != nil {
				c.set(w)
			}
			edited(t, w, ladderPod(kind, "Always", c.after))
			want := c.want
			if sidecar && c.sidecar != nil {
				want = c.sidecar
			}
			var got []string
			for _, line := range choiceText(chosen(w, c.opts)) {
				if !strings.Contains(line, "app") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, sidecar %t: (-want +got)\n%s", name, sidecar, diff)
			}
		}
	}
}

// TestStartupProbeOfARegularContainer checks that the startup probe counts after the liveness probe, and that it delays
// no other start.
func TestStartupProbeOfARegularContainer(t *testing.T) {
	const probes = ", startupProbe: {exec: {command: [a]}}, livenessProbe: {exec: {command: [a]}}"
	for name, c := range map[string]struct {
		startup, liveness model.ProbeResult
		want              []string
	}{
		"both failed": {
			model.ProbeFailure,
			model.ProbeFailure,
			[]string{
				"kill x-0-of-s0: LivenessFailed liveness probe failed: refused",
				"start x: LivenessFailed",
				"keep app: Running",
			},
		},
		"startup failed": {
			model.ProbeFailure,
			model.ProbeSuccess,
			[]string{
				"kill x-0-of-s0: StartupFailed startup probe failed: refused",
				"start x: StartupFailed",
				"keep app: Running",
			},
		},
		"undecided": {model.ProbeUnknown, model.ProbeSuccess, []string{"keep x: Running", "keep app: Running"}},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", probes))).
			Sandbox("s0", 0, model.SandboxReady).States("x=Running app=Running")
		w.Probed("x-0-of-s0", model.Startup, c.startup, 0)
		w.Probed("x-0-of-s0", model.Liveness, c.liveness, 0)
		if diff := cmp.Diff(c.want, choiceText(chosen(w, Options{}))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestFailedProbeUnderNever checks that a regular container stops for good, and that a sidecar always restarts.
func TestFailedProbeUnderNever(t *testing.T) {
	const probe = ", livenessProbe: {exec: {command: [a]}}"
	for kind, want := range map[podspec.ContainerType][]string{
		podspec.Regular: {"kill x-0-of-s0: LivenessFailed liveness probe failed: refused", "keep app: Running"},
		podspec.Sidecar: {"kill x-0-of-s0: LivenessFailed liveness probe failed: refused", "start x: LivenessFailed", "keep app: Running"},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(kind, "Never", probe))).
			Sandbox("s0", 0, model.SandboxReady).States("x=Running app=Running")
		w.Probed("x-0-of-s0", model.Liveness, model.ProbeFailure, 0)
		if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", kind, diff)
		}
	}
}

// TestGraceOfAFailedProbe checks that the probe's grace period applies only to the stop that the probe causes.
func TestGraceOfAFailedProbe(t *testing.T) {
	const probes = ", livenessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 7}, " +
		"startupProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 8}"
	for kind, want := range map[model.ProbeType]int64{model.Liveness: 7, model.Startup: 8} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", probes))).
			Sandbox("s0", 0, model.SandboxReady).States("x=Running app=Running")
		w.Probed("x-0-of-s0", kind, model.ProbeFailure, 0)
		kills := chosen(w, Options{}).kills
		if len(kills) != 1 || kills[0].grace == nil || *kills[0].grace != want {
			t.Errorf("%s: %+v", kind, kills)
		}
		if kills := chosen(w, Options{Restart: []string{"x"}}).kills; len(kills) != 1 || kills[0].grace != nil {
			t.Errorf("%s with a restart request: %+v", kind, kills)
		}
	}
}

func TestStoppedRegularContainers(t *testing.T) {
	for _, c := range []struct {
		policy, states string
		opts           Options
		want           []string
	}{
		{"Always", "", Options{}, []string{"start x: NotCreated"}},
		{"Always", "x=Created", Options{}, []string{"remove x-0-of-s0: NeverStarted", "start x: NeverStarted"}},
		{"Never", "x=Created", Options{}, []string{"remove x-0-of-s0: NeverStarted", "start x: NeverStarted"}},
		{
			"Always",
			"x=Unknown",
			Options{},
			[]string{"kill x-0-of-s0: UnknownState the runtime does not know its state", "start x: UnknownState"},
		},
		{"Always", "x=Exited", Options{}, []string{"start x: Exited"}},
		{"OnFailure", "x=Exited", Options{}, []string{"keep x: Exited"}},
		{"OnFailure", "x=Exited:1", Options{}, []string{"start x: Exited"}},
		{"Never", "x=Exited:1", Options{}, []string{"keep x: Exited"}},
		{"Never", "x=Exited:1", Options{Restart: []string{"x"}}, []string{"start x: Exited"}},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, c.policy, ""))).
			Sandbox("s0", 0, model.SandboxReady).States("app=Running " + c.states)
		var got []string
		for _, line := range choiceText(chosen(w, c.opts)) {
			if line != "keep app: Running" {
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, %q, %v: (-want +got)\n%s", c.policy, c.states, c.opts.Restart, diff)
		}
	}
}

// TestChangedContainerStartsWithoutDelay checks that an edit removes the delay, and that a record of another sandbox is
// reported.
func TestChangedContainerStartsWithoutDelay(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", ""))).
		Sandbox("s0", 0, model.SandboxReady).States("app=Running x=Exited:1")
	w.Memory.Applied = w.Desired
	edited(t, w, ladderPod(podspec.Regular, "Always", ", command: [b]"))
	c := chosen(w, Options{})
	if len(c.regulars) != 1 || !c.regulars[0].fresh || c.regulars[0].diff.Text() != `command: + ["b"]` {
		t.Errorf("%+v", c.regulars)
	}
	w.Find("x-0-of-s0").SpecHash, w.Find("x-0-of-s0").Hash = "", ""
	if c := chosen(w, Options{}); c.regulars[0].fresh {
		t.Error("editedSince returns true for a record without a hash")
	}
	w.Find("x-0-of-s0").SandboxID = "gone"
	if c := chosen(w, Options{}); c.regulars[0].reason != model.SandboxReplaced || c.regulars[0].message != "its sandbox was replaced" {
		t.Errorf("%+v", c.regulars[0].cause)
	}
}

// projectionOf returns the definition that podctl writes on a container it creates.
func projectionOf(t *testing.T, text, name string) string {
	t.Helper()
	d := modeltest.Load(t, text)
	ref, _ := podspec.FindContainer(d.Pod, name)
	tree, err := json.Marshal(spechash.ContainerProjection(d, ref.Container))
	if err != nil {
		t.Fatal(err)
	}
	return string(tree)
}

// TestDefinitionChanged checks the comparison: a container that podctl created by its whole definition, one that a
// kubelet created by name and image. A container without a readable hash is adopted unless it runs another image.
func TestDefinitionChanged(t *testing.T) {
	for name, c := range map[string]struct {
		record  func(rec *model.Container)
		fields  string
		changed bool
		text    string
	}{
		"the same":        {func(*model.Container) {}, "", false, ""},
		"another command": {func(*model.Container) {}, ", command: [b]", true, "its definition changed"},
		"another command, known by record": {
			func(rec *model.Container) { rec.Spec = projectionOf(t, ladderPod(podspec.Regular, "Always", ""), "x") },
			", command: [b]",
			true,
			`command: + ["b"]`,
		},
		"by a kubelet: another command": {func(rec *model.Container) { rec.SpecHash = "" }, ", command: [b]", false, ""},
		"by a kubelet: another image": {
			func(rec *model.Container) { rec.SpecHash, rec.Hash, rec.Image = "", "1234", "i:0" },
			"",
			true,
			"image: i:0 -> i:1",
		},
		"by a kubelet: no hash": {func(rec *model.Container) { rec.SpecHash, rec.Hash = "", "" }, "", false, ""},
		"by an older kubelet": {
			func(rec *model.Container) { rec.SpecHash, rec.Hash, rec.Image = "", "1234", "i:1" },
			"",
			false,
			"",
		},
		"no hash, another image": {
			func(rec *model.Container) { rec.SpecHash, rec.Hash, rec.Image = "", "", "i:0" },
			"",
			true,
			"image: i:0 -> i:1",
		},
		"no hash, an image without a name": {
			func(rec *model.Container) { rec.SpecHash, rec.Hash, rec.Image = "", "", "sha256:00" },
			"",
			false,
			"",
		},
		"no hash, another name of its image": {func(rec *model.Container) {
			rec.SpecHash, rec.Hash, rec.Image, rec.ImageID = "", "", "docker.io/library/i:1", "sha256:i:1"
		}, "", false, ""},
		"no hash, another name of its image by digest": {func(rec *model.Container) {
			rec.SpecHash, rec.Hash, rec.Image, rec.ImageID = "", "", "docker.io/library/i:1", "docker.io/library/i@sha256:aa"
		}, "", false, ""},
		"no hash, another image by digest": {func(rec *model.Container) {
			rec.SpecHash, rec.Hash, rec.Image, rec.ImageID = "", "", "docker.io/library/i:0", "docker.io/library/i@sha256:bb"
		}, "", true, "image: docker.io/library/i:0 -> i:1"},
		"by a kubelet: another name of its image": {func(rec *model.Container) {
			rec.SpecHash, rec.Hash = "", spechash.Kubelet(&v1.Container{Name: "x", Image: "i:0"})
			rec.Image, rec.ImageID = "i:0", "sha256:i:1"
		}, "", true, "image: i:0 -> i:1"},
		"a hash of an unknown version": {func(rec *model.Container) { rec.SpecHash = "v99:ab" }, ", command: [b]", false, ""},
		"a record that cannot be read": {func(rec *model.Container) { rec.Spec = "{" }, ", command: [b]", true, "its definition changed"},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", ""))).
			Sandbox("s0", 0, model.SandboxReady).States("x=Running")
		c.record(&w.Containers[0])
		edited(t, w, ladderPod(podspec.Regular, "Always", c.fields))
		w.Images = map[string]model.Image{"i:1": {ID: "sha256:i:1", Digests: []string{"docker.io/library/i@sha256:aa"}}}
		ref, _ := podspec.FindContainer(w.Desired.Pod, "x")
		changed, fields := definitionChanged(inputOf(w).State(), ref.Container, &w.Containers[0])
		if changed != c.changed || (changed && fields.Text() != c.text) {
			t.Errorf("%s: %t, %s", name, changed, fields.Text())
		}
	}
}
