package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

func decided(w *modeltest.World, opts Options) *decision {
	in := inputOf(w)
	in.Options = opts
	return decide(in.State(), &in.Options)
}

// decisionText describes a decision, one line per entry.
func decisionText(d *decision) []string {
	out := []string{}
	for _, s := range d.starts {
		out = append(out, "start "+s.ref.Name)
	}
	for _, k := range d.kills {
		out = append(out, "kill "+k.container.ID)
	}
	for _, k := range d.keeps {
		out = append(out, "keep "+k.Container)
	}
	for _, h := range d.holds {
		out = append(out, strings.TrimSpace(fmt.Sprintf("hold %s %s: %s", h.Container, h.Reason, h.Message)))
	}
	if d.held {
		out = append(out, "all is held")
	}
	return out
}

const missingRef = ", env: [{name: A, valueFrom: {configMapKeyRef: {name: none, key: k}}}]"

// TestMissingReferencesHoldAStart also checks that the container that would be replaced continues to run.
func TestMissingReferencesHoldAStart(t *testing.T) {
	for name, c := range map[string]struct {
		states, fields, pod string
		set                 func(w *modeltest.World)
		want                []string
	}{
		"nothing": {"app=Running", "", "", nil, []string{"start x"}},
		"a ConfigMap": {"app=Running", missingRef, "", nil, []string{
			"keep app",
			"hold x CreateContainerConfigError: ConfigMap default/none is missing: apply a file that has it, " +
				"or add it with --configmap FILE",
		}},
		"ConfigMap of a running container": {"app=Running x=Running", missingRef, "", nil, []string{
			"keep app", "keep x",
			"hold x CreateContainerConfigError: ConfigMap default/none is missing: apply a file that has it, " +
				"or add it with --configmap FILE",
		}},
		"ConfigMap of an exited container": {"app=Running x=Exited", missingRef, "", nil, []string{
			"keep app",
			"hold x CreateContainerConfigError: ConfigMap default/none is missing: apply a file that has it, " +
				"or add it with --configmap FILE",
		}},
		"an image": {"app=Running", "", "", func(w *modeltest.World) { w.Images["i:1"] = model.Image{} }, []string{"start x"}},
		"an image of other pods that may not be pulled": {
			"app=Running",
			", imagePullPolicy: Never",
			"",
			func(w *modeltest.World) { w.Images["i:1"] = model.Image{ID: "sha256:i:1", Unverified: true} },
			[]string{
				"keep app",
				"hold x ErrImageNeverPull: Container image \"i:1\" is not present with pull policy of Never",
			},
		},
		"an image that may not be pulled": {
			"app=Running",
			", imagePullPolicy: Never",
			"",
			func(w *modeltest.World) { w.Images["i:1"] = model.Image{} },
			[]string{
				"keep app",
				"hold x ErrImageNeverPull: Container image \"i:1\" is not present with pull policy of Never",
			},
		},
		"an image that was not observed": {
			"app=Running",
			", imagePullPolicy: Never",
			"",
			func(w *modeltest.World) { delete(w.Images, "i:1") },
			[]string{"start x"},
		},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", ""))).
			Sandbox("s0", 0, model.SandboxReady).States(c.states)
		edited(t, w, ladderPod(podspec.Regular, "Always", c.fields))
		if c.set != nil {
			c.set(w)
		}
		got := decisionText(decided(w, Options{}))
		if len(c.want) == 1 {
			c.want = append(c.want, "keep app")
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestMissingVolumeHoldsAllContainers checks that every container needs the pod's volumes.
func TestMissingVolumeHoldsAllContainers(t *testing.T) {
	w := modeltest.New(
		modeltest.Load(t,
			modeltest.Pod(
				"  containers: [{name: a, image: i:1}, {name: b, image: i:1, volumeMounts: [{name: v, "+
					"mountPath: /v}]}]\n  volumes: [{name: v, configMap: {name: none}}]\n")))
	d := decided(w, Options{})
	if len(d.starts) > 0 || len(d.holds) != 2 {
		t.Fatalf("%v", decisionText(d))
	}
	for _, h := range d.holds {
		if h.Reason != model.FailedMount || !h.Blocking || h.Unstartable {
			t.Errorf("%+v", h)
		}
	}
}

// TestVolumesOfAPodInCluster checks when a missing object of a volume holds a pod of the API server: only before the
// volume was prepared, as with a kubelet, and then the whole pod.
func TestVolumesOfAPodInCluster(t *testing.T) {
	for prepared, want := range map[bool]int{false: 1, true: 0} {
		w := modeltest.New(podspectest.FromAPI(t, podspectest.Minimal+
			"    volumeMounts: [{name: v, mountPath: /v}]\n  volumes: [{name: v, configMap: {name: none}}]\n"))
		w.Volumes = map[string]model.Volume{"v": {Prepared: prepared, Digest: "d", Wanted: "d"}}
		d := decided(w, Options{})
		if len(d.holds) != want || d.held != !prepared || prepared && len(d.starts) != 1 {
			t.Errorf("prepared %t: %v", prepared, decisionText(d))
		}
		for _, h := range d.holds {
			if h.Container != "" || h.Status != `MountVolume.SetUp failed for volume "v" : configmap "none" not found` {
				t.Errorf("%+v", h)
			}
		}
	}
}

// TestKnownFaultsHold checks that a known fault holds a start and stops nothing. A fault in the user of an image does
// not hold a container whose image is pulled.
func TestKnownFaultsHold(t *testing.T) {
	const always = ", imagePullPolicy: Always"
	fault := model.Fault{Reason: model.CreateContainerConfigError, Message: "so it is"}
	ofImage, ofVolume := fault, model.Fault{Reason: model.FailedMount, Message: "so it is", Volume: true}
	ofImage.ImageUser = true
	for name, c := range map[string]struct {
		faults map[string]model.Fault
		fields string
		opts   Options
		want   string
	}{
		"nothing known": {nil, "", Options{}, "start x"},
		"another's":     {map[string]model.Fault{"app": fault, "": fault}, "", Options{}, "start x"},
		"its own":       {map[string]model.Fault{"x": fault}, "", Options{}, "hold x CreateContainerConfigError: so it is"},
		"a volume's":    {map[string]model.Fault{"x": ofVolume}, "", Options{}, "hold x FailedMount: so it is"},
		"its image's": {
			map[string]model.Fault{"x": ofImage},
			"",
			Options{},
			"hold x CreateContainerConfigError: so it is",
		},
		"of an image that is pulled": {map[string]model.Fault{"x": ofImage}, always, Options{}, "start x"},
		"image that the user pulls":  {map[string]model.Fault{"x": ofImage}, "", Options{PullPolicy: "Always"}, "start x"},
		"image that the user does not pull": {
			map[string]model.Fault{"x": ofImage},
			always,
			Options{PullPolicy: "Never"},
			"hold x CreateContainerConfigError: so it is",
		},
		"own image pulled": {
			map[string]model.Fault{"x": fault},
			always,
			Options{},
			"hold x CreateContainerConfigError: so it is",
		},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", ""))).
			Sandbox("s0", 0, model.SandboxReady).States("app=Running x=Running")
		edited(t, w, ladderPod(podspec.Regular, "Always", ", command: [b]"+c.fields))
		w.Faults = c.faults
		d := decided(w, c.opts)
		got := decisionText(d)
		if !slices.Contains(got, c.want) || (len(d.holds) > 0) == (len(d.kills) > 0) {
			t.Errorf("%s: got %q, want %q, and a stop only for a container that starts again", name, got, c.want)
		}
		for _, h := range d.holds {
			if !h.Blocking || h.Unstartable != !c.faults["x"].Volume {
				t.Errorf("%s: %+v", name, h)
			}
		}
	}
}

// TestKnownFaultsHoldAPod checks that nothing is created or stopped if the sandbox or a volume cannot be created.
func TestKnownFaultsHoldAPod(t *testing.T) {
	ofSandbox := map[string]model.Fault{"": {Reason: model.CreatePodSandboxError, Message: "so it is"}}
	bad := model.Fault{Reason: model.FailedMount, Message: "so it is", Volume: true}
	ofVolume := map[string]model.Fault{"": bad, "app": bad, "x": bad}
	for name, c := range map[string]struct {
		states string
		faults map[string]model.Fault
		want   string
	}{
		"a new pod":           {"", ofSandbox, "hold  CreatePodSandboxError: so it is"},
		"a new pod's volumes": {"", ofVolume, "hold  FailedMount: so it is"},
		"recreated pod":       {"app=Running x=Running", ofSandbox, "hold  CreatePodSandboxError: so it is"},
		"its volumes":         {"app=Running x=Running", ofVolume, "hold  FailedMount: so it is"},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", "")))
		if c.states != "" {
			w.Sandbox("s0", 0, model.SandboxReady).States(c.states)
			w.Sandboxes[0].SpecHash = "v1:00"
		}
		w.Faults = c.faults
		in := inputOf(w)
		d := decided(w, Options{})
		if !d.held || !slices.Contains(decisionText(d), c.want) || len(d.holds) > 1 {
			t.Errorf("%s: %q, want %q", name, decisionText(d), c.want)
		}
		if p := Make(in); len(p.Steps) > 0 {
			t.Errorf("%s: a held pod has steps: %+v", name, p.Steps)
		}
	}
}

// TestPullPolicyOfTheUser checks that the option overrides the manifest.
func TestPullPolicyOfTheUser(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, modeltest.Pod("  containers: [{name: a, image: i:1, imagePullPolicy: Always}]\n")))
	w.Images["i:1"] = model.Image{}
	if d := decided(w, Options{PullPolicy: "Never"}); len(d.holds) != 1 || d.holds[0].Reason != model.ErrImageNeverPull {
		t.Errorf("%v", decisionText(d))
	}
	if d := decided(w, Options{}); len(d.holds) > 0 {
		t.Errorf("%v", decisionText(d))
	}
}

// TestDelayHoldsAStart checks that a new definition or the user's request overrides the delay.
func TestDelayHoldsAStart(t *testing.T) {
	crash := func(w *modeltest.World) {
		w.End("x", 7, 5*time.Second)
		w.Memory.Backoffs["x"] = model.Backoff{Duration: 40 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
	}
	held := []string{"keep app", "hold x CrashLoopBackOff: back-off 40s, exit code 7"}
	for name, c := range map[string]struct {
		fields string
		set    func(w *modeltest.World)
		opts   Options
		want   []string
	}{
		"a crash":               {"", crash, Options{}, held},
		"and an edit":           {", command: [b]", crash, Options{}, []string{"start x", "keep app"}},
		"and a restart":         {"", crash, Options{Restart: []string{"x"}}, []string{"start x", "keep app"}},
		"and another's restart": {"", crash, Options{Restart: []string{"app"}}, []string{"start app", "kill app-0-of-s0", held[1]}},
		"and no delays":         {"", crash, Options{IgnoreBackoff: true}, []string{"start x", "keep app"}},
		"podctl stopped it": {
			"",
			func(w *modeltest.World) { crash(w); w.Memory.PendingRestarts = map[string]string{"x": "x-0-of-s0"} },
			Options{},
			[]string{"start x", "keep app"},
		},
		"its sandbox was edited": {
			"",
			func(w *modeltest.World) { crash(w); w.Sandboxes[0].SpecHash = "v1:00" },
			Options{},
			[]string{"start x", "start app"},
		},
		"its sandbox ended": {
			"",
			func(w *modeltest.World) { crash(w); w.Sandboxes[0].State = model.SandboxNotReady },
			Options{},
			[]string{"start app", held[1]},
		},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", ""))).
			Sandbox("s0", 0, model.SandboxReady).States("app=Running x=Running")
		c.set(w)
		edited(t, w, ladderPod(podspec.Regular, "Always", c.fields))
		if diff := cmp.Diff(c.want, decisionText(decided(w, c.opts))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestEndsOfHolds checks the fields that callers use instead of reasons.
func TestEndsOfHolds(t *testing.T) {
	notReady := false
	for name, c := range map[string]struct {
		spec, states          string
		set                   func(w *modeltest.World)
		reason                model.Reason
		blocking, unstartable bool
		until, recheck        time.Duration
	}{
		"a delay": {"  containers: [{name: a, image: i:1}]\n", "a=Running", func(w *modeltest.World) {
			w.End("a", 1, 0)
			w.Memory.Backoffs["a"] = model.Backoff{Duration: 20 * time.Second, LastUpdate: modeltest.Noon()}
		}, model.CrashLoopBackOff, false, false, 20 * time.Second, 0},
		"a network": {"  containers: [{name: a, image: i:1}]\n", "", func(w *modeltest.World) {
			w.Runtime.NetworkReady = &notReady
		}, model.NetworkNotReady, false, false, 0, time.Second},
		"a stale failure": {
			"  containers: [{name: a, image: i:1, livenessProbe: {exec: {command: [a]}}}]\n",
			"a=Running",
			func(w *modeltest.World) { w.Probed("a-0-of-s0", model.Liveness, model.ProbeFailure, time.Hour) },
			model.ProbeStale, false, false, 0, 0,
		},
		"a reference": {
			"  containers: [{name: a, image: i:1" + missingRef + "}]\n",
			"",
			nil,
			model.CreateContainerConfigError,
			true,
			true,
			0,
			10 * time.Second,
		},
		"an image": {"  containers: [{name: a, image: i:1, imagePullPolicy: Never}]\n", "", func(w *modeltest.World) {
			w.Images["i:1"] = model.Image{}
		}, model.ErrImageNeverPull, true, true, 0, 10 * time.Second},
		"a port": {"  containers: [{name: a, image: i:1, ports: [{containerPort: 80, hostPort: 80}]}]\n", "", func(w *modeltest.World) {
			w.Sandboxes, w.Ports = nil, map[string]string{"80/TCP": "pod default/other"}
		}, model.HostPortConflict, true, false, 0, 10 * time.Second},
		"a handler": {"  runtimeClassName: kata\n  containers: [{name: a, image: i:1}]\n", "", func(w *modeltest.World) {
			w.Sandboxes, w.Runtime.Handlers = nil, []string{""}
		}, model.CreatePodSandboxError, true, false, 0, 10 * time.Second},
		"an end under Never": {"  restartPolicy: Never\n  containers: [{name: a, image: i:1}]\n", "a=Running", func(w *modeltest.World) {
			w.Sandboxes[0].State = model.SandboxNotReady
		}, model.SandboxNotReadyState, true, false, 0, 0},
	} {
		w := web(t, c.spec, c.states)
		if c.set != nil {
			c.set(w)
		}
		d := decided(w, Options{})
		if len(d.holds) != 1 {
			t.Errorf("%s: %v", name, decisionText(d))
			continue
		}
		h := d.holds[0]
		if h.Recheck != c.recheck || recheck(d.holds) != c.recheck {
			t.Errorf("%s: recheck after %s, of the plan %s", name, h.Recheck, recheck(d.holds))
		}
		if h.Reason != c.reason || h.Blocking != c.blocking || h.Unstartable != c.unstartable ||
			(h.Until != nil) != (c.until > 0) || (h.Delay != nil) != (c.until > 0) {
			t.Errorf("%s: %+v", name, h)
		}
		if h.Until != nil && (!h.Until.Equal(modeltest.Noon().Add(c.until)) || h.Delay.Duration != c.until || h.Delay.ExitCode != 1) {
			t.Errorf("%s: until %s, %+v", name, h.Until, h.Delay)
		}
	}
}

// TestPodIsHeld checks that the whole pod is held without its sandbox or network, or if a container could not be
// started again.
func TestPodIsHeld(t *testing.T) {
	notReady := false
	replaced := func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "v1:00" }
	for name, c := range map[string]struct {
		fields, states string
		set            func(w *modeltest.World)
		want           []string
	}{
		"no hold": {"", "app=Running x=Running", replaced, []string{"start x", "start app"}},
		"a taken port": {", ports: [{containerPort: 80, hostPort: 80}]", "app=Running x=Running", func(w *modeltest.World) {
			replaced(w)
			w.Ports = map[string]string{"80/TCP": "pod default/other"}
		}, []string{
			"start x", "start app",
			"hold  HostPortConflict: spec.containers[0].ports[0]: hostPort 80/TCP is used by pod default/other",
			"all is held",
		}},
		"a taken port, and the sandbox stays": {
			", ports: [{containerPort: 80, hostPort: 80}]",
			"app=Running x=Exited",
			func(w *modeltest.World) { w.Ports = map[string]string{"80/TCP": "pod default/other"} },
			[]string{"start x", "keep app"},
		},
		"a network that is not ready": {"", "app=Running", func(w *modeltest.World) { w.Runtime.NetworkReady = &notReady }, []string{
			"start x", "keep app", "hold  NetworkNotReady: the runtime's network is not ready", "all is held",
		}},
		"a network that is not needed": {
			"",
			"app=Running x=Running",
			func(w *modeltest.World) { w.Runtime.NetworkReady = &notReady },
			[]string{"keep x", "keep app"},
		},
		"a reference that is missing": {missingRef, "app=Running x=Running", replaced, []string{
			"start app",
			"hold x CreateContainerConfigError: ConfigMap default/none is missing: apply a file that has it, " +
				"or add it with --configmap FILE",
			"all is held",
		}},
		"a reference, and nothing runs": {missingRef, "app=Exited x=Exited", replaced, []string{
			"start app",
			"hold x CreateContainerConfigError: ConfigMap default/none is missing: apply a file that has it, " +
				"or add it with --configmap FILE",
		}},
	} {
		w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", c.fields))).
			Sandbox("s0", 0, model.SandboxReady).States(c.states)
		c.set(w)
		if diff := cmp.Diff(c.want, decisionText(decided(w, Options{}))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestLaterContainersAreChecked checks that containers of later passes are checked too if a new sandbox replaces
// running containers.
func TestLaterContainersAreChecked(t *testing.T) {
	for states, want := range map[string]string{
		"seed=Exited app=Running log=Running": "[seed app log]",
		"seed=Exited app=Exited log=Exited":   "[seed]",
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady).States(states)
		w.Sandboxes[0].SpecHash = "v1:00"
		var names []string
		for _, ref := range decided(w, Options{}).proven {
			names = append(names, ref.Name)
		}
		if fmt.Sprint(names) != want {
			t.Errorf("%q: %v", states, names)
		}
	}
}

// TestRecreationReportsLaterHolds checks that the hold of a later container is reported although the init container
// starts now.
func TestRecreationReportsLaterHolds(t *testing.T) {
	broken := strings.Replace(modeltest.WebPod, "{name: log, image: i:1}", "{name: log, image: i:1"+missingRef+"}", 1)
	w := modeltest.New(modeltest.Load(t, broken)).
		Sandbox("s0", 0, model.SandboxReady).States("seed=Exited app=Running")
	w.Sandboxes[0].SpecHash = "v1:00"
	d := decided(w, Options{})
	if !d.held || len(d.holds) != 1 || d.holds[0].Container != "log" {
		t.Errorf("%v", decisionText(d))
	}
}

// TestRestrainCopiesTheChoice checks that restrain works on a copy.
func TestRestrainCopiesTheChoice(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, ladderPod(podspec.Regular, "Always", ""))).
		Sandbox("s0", 0, model.SandboxReady).States("app=Running x=Running")
	edited(t, w, ladderPod(podspec.Regular, "Always", missingRef))
	in := inputOf(w)
	c := choose(in.State(), &in.Options)
	before := choiceText(c)
	d := restrain(in.State(), &in.Options, c)
	if diff := cmp.Diff(before, choiceText(c)); diff != "" || len(c.kills) != 1 || len(d.kills) != 0 {
		t.Errorf("restrain changed its input: %d kills in the choice, %d in the decision (-before +after)\n%s",
			len(c.kills), len(d.kills), diff)
	}
}

// TestVersionsAreCompared checks that only the first two numbers count.
func TestVersionsAreCompared(t *testing.T) {
	for version, older := range map[string]bool{
		"1.6.20": true,
		"v1.7.0": true,
		"2.0.5":  true,
		"2.0":    true,
		"2.1.0":  false,
		"2.10.0": false,
		"3.0":    false,
		"2":      false,
		"":       false,
		"a.b":    false,
		"1.x":    false,
	} {
		if got := olderThan(version, 2, 1); got != older {
			t.Errorf("%q: %t", version, got)
		}
	}
}

func TestImageVolumesAreMountedVolumes(t *testing.T) {
	d := modeltest.Load(t,
		modeltest.Pod(
			"  containers: [{name: a, image: i:1, volumeMounts: [{name: x, mountPath: /x}, {name: e, "+
				"mountPath: /e}]}, {name: b, image: i:1}]\n"+
				"  volumes: [{name: x, image: {reference: \"d:1\"}}, {name: z, image: {reference: \"d:2\"}}, "+
				"{name: e, emptyDir: {}}]\n"))
	for name, want := range map[string]int{"a": 1, "b": 0} {
		ref, _ := podspec.FindContainer(d.Pod, name)
		if got := imageVolumes(d.Pod, ref); len(got) != want || (want > 0 && got[0].Name != "x") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDebugContainersWaitForTheirTarget checks that a debug container starts with its target or while the target runs,
// and is held otherwise. The containers of the pod do not wait for it.
func TestDebugContainersWaitForTheirTarget(t *testing.T) {
	const spec = "  restartPolicy: OnFailure\n  initContainers: [{name: i, image: i:1}]\n" +
		"  containers: [{name: a, image: i:1}, {name: b, image: i:1}]\n" +
		"  ephemeralContainers: [{name: look, image: i:1, targetContainerName: a}, {name: see, image: i:1}]\n"
	for history, want := range map[string]struct{ starts, held string }{
		"i=Running":                     {"see", "look"},
		"i=Exited":                      {"a b look see", ""},
		"i=Exited a=Running b=Running":  {"look see", ""},
		"i=Exited a=Exited:0 b=Running": {"look see", ""},
	} {
		p := makePlan(web(t, spec, history))
		var starts, held []string
		for _, s := range p.Steps {
			if s.Kind == StartContainer {
				starts = append(starts, s.Container)
			}
		}
		for _, h := range p.Holds {
			held = append(held, h.Container)
			if h.Blocking || h.Message != "container a, whose processes it joins, has not started yet" {
				t.Errorf("%s: %+v", history, h)
			}
		}
		if strings.Join(starts, " ") != want.starts || strings.Join(held, " ") != want.held {
			t.Errorf("%s: starts %q, held %q, want %+v", history, starts, held, want)
		}
	}
}
