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
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestKeepsAreInTheOrderOfTheManifest checks that keeps follow the sandbox in manifest order, and that none is stopped.
func TestKeepsAreInTheOrderOfTheManifest(t *testing.T) {
	spec := "  initContainers: [{name: seed, image: i:1}]\n  containers: [{name: b, image: i:1}, {name: a, image: i:1}]\n"
	for name, c := range map[string]struct {
		states string
		set    func(w *modeltest.World)
		want   string
	}{
		"all stay": {"a=Running b=Running seed=Exited", nil, "sandbox seed b a"},
		"one is replaced": {"a=Running b=Running seed=Exited", func(w *modeltest.World) {
			edited(t, w, modeltest.Pod(strings.Replace(spec, "b, image: i:1", "b, image: i:2", 1)))
		}, "sandbox seed a"},
		"all are replaced": {"a=Running b=Running seed=Exited", func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "v1:00" }, ""},
	} {
		w := web(t, spec, c.states)
		if c.set != nil {
			c.set(w)
		}
		var got []string
		for _, k := range makePlan(w).Keeps {
			if k.Container == "" {
				k.Container = "sandbox"
			}
			got = append(got, k.Container)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
	if k := makePlan(web(t, spec, "a=Running b=Running")).Keeps[0]; k.ContainerID != "s0" || k.State != "READY" || k.Message != "10.0.0.2" {
		t.Errorf("%+v", k)
	}
}

// TestLater checks what follows the init container that starts, runs or is held.
func TestLater(t *testing.T) {
	spec := "  restartPolicy: OnFailure\n" +
		"  initContainers: [{name: a, image: i:1}, {name: side, image: i:1, restartPolicy: Always}, {name: slow, " +
		"image: i:1, restartPolicy: Always, startupProbe: {exec: {command: [a]}}}]\n" +
		"  containers: [{name: app, image: i:1}, {name: log, image: i:1}]\n"
	for states, want := range map[string]string{
		"":                                    "sidecar side, then sidecar slow, then app, log (when a has exited 0)",
		"a=Running":                           "sidecar side, then sidecar slow, then app, log (when a has exited 0)",
		"a=Exited":                            "sidecar slow, then app, log (when side has started)",
		"a=Exited side=Running":               "app, log (when slow has passed its startup probe)",
		"a=Exited side=Running slow=Running":  "app, log (when slow has passed its startup probe)",
		"a=Exited side=Running app=Running":   "",
		"a=Running app=Exited":                "sidecar side, then sidecar slow, then log (when a has exited 0)",
		"a=Running app=Exited log=Exited":     "sidecar side, then sidecar slow (when a has exited 0)",
		"a=Exited:1":                          "sidecar side, then sidecar slow, then app, log (when a has exited 0)",
		"a=Exited side=Exited slow=Running":   "app, log (when slow has passed its startup probe)",
		"a=Exited side=Running slow=Exited:1": "app, log (when slow has passed its startup probe)",
	} {
		if got := strings.Join(makePlan(web(t, spec, states)).Later, "; "); got != want {
			t.Errorf("%q: got %q, want %q", states, got, want)
		}
	}
}

// TestLaterStepsOfHeldContainers checks that a held init container also lists what follows it.
func TestLaterStepsOfHeldContainers(t *testing.T) {
	w := web(t, "  initContainers: [{name: seed, image: i:1}]\n  containers: [{name: app, image: i:1}]\n", "seed=Exited:1")
	w.Memory.Backoffs["seed"] = model.Backoff{Duration: time.Hour, LastUpdate: modeltest.Noon()}
	p := makePlan(w)
	if len(p.Holds) != 1 || len(p.Later) != 1 || p.Later[0] != "app (when seed has exited 0)" {
		t.Errorf("holds %+v, later %q", p.Holds, p.Later)
	}
}

// TestWaitingText checks the text, and that the planner uses the container and not the text.
func TestWaitingText(t *testing.T) {
	spec := "  initContainers: [{name: to, image: i:1}, {name: seed, image: i:1}]\n  containers: [{name: app, image: i:1}]\n"
	p := makePlan(web(t, spec, "to=Exited seed=Running"))
	if diff := cmp.Diff([]string{"init container seed to finish"}, p.WaitingFor); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	d := decided(web(t, spec, "to=Exited seed=Running"), Options{})
	if !d.waitsFor("seed") || d.waitsFor("to") || d.waitsFor("finish") {
		t.Errorf("%v", d.waiting)
	}
	if (&choice{waiting: []waiting{{}}}).waitsFor("") {
		t.Error("waitsFor matches a container, but the entry has none")
	}
}

// TestDrift checks the list of changes made outside podctl.
func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(w *modeltest.World)
		want []string
	}{
		"nothing": {func(*modeltest.World) {}, []string{}},
		"the cgroup": {
			func(w *modeltest.World) { w.CgroupExists = new(false) },
			[]string{"the pod's cgroup is missing while containers run: limits of the whole pod have no effect"},
		},
		"a cgroup there": {func(w *modeltest.World) { w.CgroupExists = new(true) }, []string{}},
		"an unmanaged container": {func(w *modeltest.World) {
			w.Unmanaged = []model.Unmanaged{{ID: "0123456789abcdef", Name: "x"}, {ID: "fedcba9876543210"}}
		}, []string{
			"container x (0123456789ab) in the pod's sandbox is unmanaged: podctl does not change it",
			"container without a name (fedcba987654) in the pod's sandbox is unmanaged: podctl does not change it",
		}},
		"a container is gone": {func(w *modeltest.World) {
			w.Memory.LastRun = &model.LastRun{Sandbox: "s0", Containers: map[string]string{"app": "other", "gone": "left"}}
		}, []string{"container app (other) is gone: removed outside podctl"}},
		"a container was stopped": {func(w *modeltest.World) {
			w.End("app", 143, time.Hour)
			w.End("log", 137, time.Hour)
			w.Memory.LastRun = &model.LastRun{Sandbox: "s0", Containers: map[string]string{"app": "app-0-of-s0", "log": "log-0-of-s0"}}
		}, []string{
			"container app (app-0-of-s0) was stopped outside podctl: exit code 143 (SIGTERM)",
			"container log (log-0-of-s0) was stopped outside podctl: exit code 137 (SIGKILL)",
		}},
		"a container ended by itself": {func(w *modeltest.World) {
			w.End("app", 1, time.Hour)
			w.End("log", 137, time.Hour).Reason = "OOMKilled"
			w.Memory.LastRun = &model.LastRun{Sandbox: "s0", Containers: map[string]string{"app": "app-0-of-s0", "log": "log-0-of-s0"}}
		}, []string{}},
		"the sandbox is gone": {func(w *modeltest.World) {
			w.Memory.LastRun = &model.LastRun{Sandbox: "sandbox-of-old", Containers: map[string]string{"app": "other"}}
		}, []string{"sandbox sandbox-of-o is gone: removed outside podctl"}},
		"the sandbox ended": {func(w *modeltest.World) {
			w.Sandboxes[0].State = model.SandboxNotReady
			w.Memory.LastRun = &model.LastRun{Sandbox: "s0", Containers: map[string]string{"app": "other"}}
		}, []string{"sandbox s0 was stopped outside podctl, or by a restart of the machine"}},
		"no sandbox was left": {func(w *modeltest.World) { w.Memory.LastRun = &model.LastRun{} }, []string{}},
	} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		c.set(w)
		if diff := cmp.Diff(c.want, makePlan(w).Drift); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestFinishedPodHasNotDrifted checks that missing containers of a finished pod are no drift.
func TestFinishedPodHasNotDrifted(t *testing.T) {
	w := web(t, "  restartPolicy: Never\n  containers: [{name: app, image: i:1}]\n", "app=Exited:137")
	w.Memory.LastRun = &model.LastRun{Sandbox: "s9", Containers: map[string]string{"app": "app-0-of-s0"}}
	if got := makePlan(w).Drift; len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestNotesOnImages checks a tag that refers to another image than the running one.
func TestNotesOnImages(t *testing.T) {
	want := []string{"app runs image 0123456789ab, but i:1 now refers to i:1: podctl restart web app uses the new image"}
	for name, c := range map[string]struct {
		set  func(w *modeltest.World)
		want []string
	}{
		"another image":         {func(*modeltest.World) {}, want},
		"the same":              {func(w *modeltest.World) { w.Images["i:1"] = model.Image{ID: "sha256:0123456789abcdef"} }, []string{}},
		"images not observed":   {func(w *modeltest.World) { w.Images = nil }, []string{}},
		"image id not reported": {func(w *modeltest.World) { w.Find("app-0-of-s0").ImageID = "" }, []string{}},
		"the same, named by a digest": {func(w *modeltest.World) {
			w.Images["i:1"] = model.Image{ID: "sha256:ff", Digests: []string{"r/i@sha256:0123456789abcdef"}}
			w.Find("app-0-of-s0").ImageID = "r/i@sha256:0123456789abcdef"
		}, []string{}},
		"named by a digest of no image": {
			func(w *modeltest.World) { w.Find("app-0-of-s0").ImageID = "r/i@sha256:0123456789abcdef" },
			[]string{},
		},
		"another, named by a digest": {func(w *modeltest.World) {
			w.Images["i:1"] = model.Image{ID: "sha256:ff", Digests: []string{"r/i@sha256:aaaabbbbccccdddd"}}
			w.Find("app-0-of-s0").ImageID = "r/i@sha256:0123456789abcdef"
		}, []string{"app runs image 0123456789ab, but i:1 now refers to aaaabbbbcccc: podctl restart web app uses the new image"}},
		"the container has ended":   {func(w *modeltest.World) { w.End("app", 0, time.Hour) }, []string{}},
		"the container is replaced": {func(w *modeltest.World) { w.Find("app-0-of-s0").SpecHash = "v1:00" }, []string{}},
		"another is stopped":        {func(w *modeltest.World) { w.Find("log-0-of-s0").SpecHash = "v1:00" }, want},
	} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		w.Find("app-0-of-s0").ImageID = "sha256:0123456789abcdef"
		c.set(w)
		if diff := cmp.Diff(c.want, makePlan(w).Notes); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestNotesOnSecrets checks digests that were made with another key: podctl cannot compare them and stops nothing.
func TestNotesOnSecrets(t *testing.T) {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n---\n" +
		modeltest.Pod("  containers: [{name: app, image: i:1, envFrom: [{secretRef: {name: s}}]}]\n")
	w := modeltest.New(modeltest.Load(t, text)).Sandbox("s0", 0, model.SandboxReady).States("app=Running")
	if p := makePlan(w); len(p.Notes) > 0 || !p.Complete {
		t.Errorf("with the same key: %q, %v", p.Notes, lines(p))
	}
	w.Desired = modeltest.Load(t, text)
	w.Desired.UseKey(digest.NewKey([]byte("another key of 32 bytes, just so.")))
	p := makePlan(w)
	const unknown = "container app: it is unknown whether the Secrets in its environment have changed"
	if len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0], unknown) || !p.Complete {
		t.Errorf("with another key: %q, %v", p.Notes, lines(p))
	}
}

// TestEditOfAFinishedPod checks that the edit is not run, and that a note explains it.
func TestEditOfAFinishedPod(t *testing.T) {
	const note = "The pod has finished. Delete it first to run the change."
	spec := "  restartPolicy: Never\n  containers: [{name: app, image: i:1%s}]\n"
	for name, c := range map[string]struct {
		fields string
		set    func(w *modeltest.World)
		want   []string
	}{
		"no edit": {"", nil, []string{}},
		"an edit": {", command: [b]", nil, []string{note}},
		"an edit since it completed": {
			", command: [b]",
			func(w *modeltest.World) { w.Memory.Completion = completed(w, w.Desired) },
			[]string{note},
		},
		"finished with the present manifest": {"", func(w *modeltest.World) { w.Memory.Completion = completed(w, w.Desired) }, []string{}},
		"no record, and completed": {
			", command: [b]",
			func(w *modeltest.World) { w.Memory.Completion = completed(w, w.Desired); w.Containers = nil },
			[]string{note},
		},
		"a container that never ran": {", command: [b]", func(w *modeltest.World) {
			w.Memory.Completion, w.Containers = &model.Completion{Phase: v1.PodFailed}, nil
		}, []string{}},
		"a record without a hash": {
			", command: [b]",
			func(w *modeltest.World) { w.Containers[0].SpecHash, w.Containers[0].Hash = "", "" },
			[]string{},
		},
	} {
		w := web(t, fmt.Sprintf(spec, ""), "app=Exited")
		if c.set != nil {
			c.set(w)
		}
		edited(t, w, modeltest.Pod(fmt.Sprintf(spec, c.fields)))
		if diff := cmp.Diff(c.want, makePlan(w).Notes); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func completed(_ *modeltest.World, d *podspec.Desired) *model.Completion {
	return &model.Completion{Phase: v1.PodSucceeded, At: modeltest.Noon(), DesiredDigest: d.Digest()}
}

// TestSummaryCountsObjects checks that the sandbox counts as one object, and that a stop and a start count as a
// replacement.
func TestSummaryCountsObjects(t *testing.T) {
	for name, c := range map[string]struct {
		steps []Step
		want  Summary
	}{
		"nothing": {nil, Summary{}},
		"a start": {
			[]Step{
				{Kind: CheckContainer, Container: "a"},
				{Kind: PullImage, Container: "a"},
				{Kind: StartContainer, Container: "a"},
			},
			Summary{Start: 1},
		},
		"a sandbox and a start": {[]Step{{Kind: RunSandbox}, {Kind: StartContainer, Container: "a"}}, Summary{Start: 2}},
		"a replacement": {
			[]Step{
				{Kind: StopContainer, Container: "a"},
				{Kind: StartContainer, Container: "a"},
				{Kind: RemoveContainer, Container: "a"},
			},
			Summary{Replace: 1},
		},
		"another sandbox": {[]Step{{Kind: StopSandbox}, {Kind: RunSandbox}, {Kind: RemoveSandbox}}, Summary{Replace: 1}},
		"a stop":          {[]Step{{Kind: StopContainer, Container: "a"}}, Summary{Stop: 1}},
		"a removal": {
			[]Step{{Kind: StopContainer, Container: "a"}, {Kind: RemoveContainer, Container: "a"}},
			Summary{Remove: 1},
		},
		"updates": {
			[]Step{{Kind: UpdateContainer, Container: "a"}, {Kind: UpdatePod}, {Kind: UpdateVolume}},
			Summary{Update: 3},
		},
		"not an object": {
			[]Step{{Kind: CreateCgroup}, {Kind: PrepareVolume}, {Kind: RotateLog, Container: "a"}, {Kind: ArchiveLogs}},
			Summary{Prepare: 2, Rotate: 1, CleanUp: 1},
		},
		"a pull for later": {
			[]Step{
				{Kind: PullImage, Container: "a"},
				{Kind: PullImage, Container: "b"},
				{Kind: StopContainer, Container: "b"},
			},
			Summary{Prepare: 1, Stop: 1},
		},
	} {
		p := &Plan{Steps: c.steps}
		if p.recordObjects(); p.Summary != c.want {
			t.Errorf("%s: got %+v, want %+v", name, p.Summary, c.want)
		}
	}
	if got := summarise(&Plan{Holds: make([]Hold, 2), Keeps: make([]Keep, 3)}); got != (Summary{Hold: 2, Keep: 3}) {
		t.Errorf("%+v", got)
	}
}

// TestOnlyKeepsWantedSteps checks that edges to dropped steps are removed, and that the summary counts the rest.
func TestOnlyKeepsWantedSteps(t *testing.T) {
	p := makePlan(modeltest.New(modeltest.Load(t, modeltest.WebPod)))
	p.Only(func(s *Step) bool { return s.Kind != CheckContainer })
	want := []string{"run-sandbox SandboxMissing", "start-seed NotCreated after run-sandbox"}
	if diff := cmp.Diff(want, lines(p)); diff != "" || p.Summary.Start != 2 || !p.Pending() {
		t.Errorf("%+v (-want +got)\n%s", p.Summary, diff)
	}
	p.Only(func(*Step) bool { return false })
	if text, err := json.Marshal(p); err != nil || !strings.Contains(string(text), `"steps":[]`) || p.Pending() {
		t.Errorf("%s, %v", text, err)
	}
}

// TestDebugPlanStartsOneContainer checks that a debug plan has no other steps.
func TestDebugPlanStartsOneContainer(t *testing.T) {
	spec := "  containers: [{name: app, image: i:1}]\n  ephemeralContainers: [{name: look, image: i:1}]\n"
	for name, c := range map[string]struct {
		states string
		set    func(w *modeltest.World)
		want   []string
	}{
		"the container is to start": {"app=Running", nil, []string{"check-look BeforeStart", "start-look NotCreated after check-look"}},
		"another one starts too":    {"app=Exited", nil, []string{"check-look BeforeStart", "start-look NotCreated after check-look"}},
		"the container was there":   {"app=Running look=Exited", nil, []string{}},
		"the sandbox is to be new":  {"app=Running", func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "v1:00" }, []string{}},
		"image absent": {
			"app=Running",
			func(w *modeltest.World) { w.Images["i:1"] = model.Image{} },
			[]string{
				"pull-look ImageAbsent",
				"check-look BeforeStart after pull-look",
				"start-look NotCreated after check-look",
			},
		},
		"the network is not ready": {"app=Running", func(w *modeltest.World) { w.Runtime.NetworkReady = new(false) }, []string{}},
		"holds another container": {"app=Exited", func(w *modeltest.World) {
			w.Memory.Backoffs["app"] = model.Backoff{Duration: time.Hour, LastUpdate: modeltest.Noon()}
		}, []string{"check-look BeforeStart", "start-look NotCreated after check-look"}},
	} {
		w := web(t, spec, c.states)
		if c.set != nil {
			c.set(w)
		}
		if diff := cmp.Diff(c.want, lines(MakeDebug(inputOf(w), "look"))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestListsAreNeverNull also checks that a waiting plan is not complete.
func TestListsAreNeverNull(t *testing.T) {
	running := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	gone := inputOf(running)
	gone.Desired = nil
	for name, p := range map[string]*Plan{"nothing to do": makePlan(running), "a deletion": Make(gone)} {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "null") {
			t.Errorf("%s: %s", name, text)
		}
	}
	spec := "  initContainers: [{name: seed, image: i:1}]\n  containers: [{name: app, image: i:1}]\n"
	if p := makePlan(web(t, spec, "seed=Running")); p.Complete || len(p.Steps)+len(p.Holds) > 0 {
		t.Errorf("complete %t: %v", p.Complete, lines(p))
	}
}
