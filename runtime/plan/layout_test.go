package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// stepsOf returns the lines of a plan's steps of some kinds.
func stepsOf(p *Plan, kinds ...Kind) []string {
	var some []string
	all := lines(p)
	for i := range p.Steps {
		for _, kind := range kinds {
			if p.Steps[i].Kind == kind {
				some = append(some, all[i])
			}
		}
	}
	return some
}

// TestCgroupIsCreatedBeforeTheSandbox checks that the cgroup is created only if it is known to be missing.
func TestCgroupIsCreatedBeforeTheSandbox(t *testing.T) {
	for name, c := range map[string]struct {
		exists *bool
		want   string
	}{
		"the cgroup exists":          {new(true), "run-sandbox SandboxMissing"},
		"the cgroup is missing":      {new(false), "run-sandbox SandboxMissing after create-cgroup"},
		"the cgroup is not podctl's": {nil, "run-sandbox SandboxMissing"},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod))
		w.CgroupExists = c.exists
		if got := stepsOf(makePlan(w), RunSandbox); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestVolumesOfAFinishedPod checks that the volumes of a pod of the API server are removed once it has finished and
// nothing runs, and that changed content is not written any more. Volumes of other pods stay.
func TestVolumesOfAFinishedPod(t *testing.T) {
	const spec = podspectest.Minimal + "    volumeMounts: [{name: v, mountPath: /v}]\n  restartPolicy: Never\n  volumes: [{name: v, configMap: {name: m, optional: true}}]\n"
	for name, c := range map[string]struct {
		load   loader
		states string
		remain bool
		want   []string
	}{
		"it has finished":      {podspectest.FromAPI, "app=Exited", true, []string{"remove-volumes Completed after stop-sandbox-s0"}},
		"it has no files":      {podspectest.FromAPI, "app=Exited", false, nil},
		"it runs":              {podspectest.FromAPI, "app=Running", true, nil},
		"a container is stray": {podspectest.FromAPI, "app=Exited stray=Running", true, []string{"remove-volumes Completed after stop-stray-0-of-s,stop-sandbox-s0"}},
		"it is not of the API": {podspectest.Desired, "app=Exited", false, nil},
	} {
		w := modeltest.New(c.load(t, spec)).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		w.VolumesRemain = c.remain
		w.Volumes = map[string]model.Volume{"v": {Prepared: true, Digest: "a", Wanted: "b"}}
		p := makePlan(w)
		if got := stepsOf(p, RemoveVolume); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if c.states != "app=Running" && c.load(t, spec).FromCluster() && len(stepsOf(p, UpdateVolume)) > 0 {
			t.Errorf("%s: the volume is updated", name)
		}
	}
}

// TestCgroupOfAFinishedPodIsRemoved checks that the cgroup is removed once nothing runs in it.
func TestCgroupOfAFinishedPodIsRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		states  string
		exists  *bool
		remains bool
		want    []string
	}{
		"the cgroup exists":          {"app=Exited", new(true), false, []string{"remove-cgroup Completed after stop-sandbox-s0"}},
		"parts of the cgroup remain": {"app=Exited", new(false), true, []string{"remove-cgroup Completed after stop-sandbox-s0"}},
		"the cgroup is gone":         {"app=Exited", new(false), false, nil},
		"the cgroup is not podctl's": {"app=Exited", nil, false, nil},
		"the pod still runs":         {"app=Running", new(true), false, nil},
		"a container is stray": {
			"app=Exited stray=Running",
			new(true),
			false,
			[]string{"remove-cgroup Completed after stop-stray-0-of-s,stop-sandbox-s0"},
		},
	} {
		w := web(t, "  restartPolicy: Never\n  containers: [{name: app, image: i:1}]\n", c.states)
		w.CgroupExists, w.CgroupRemains = c.exists, c.remains
		if got := stepsOf(makePlan(w), RemoveCgroup); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestVolumesAreReadyBeforeAnythingStarts also checks that files on the host come after the directories they may be in,
// and that new content is written even if nothing starts.
func TestVolumesAreReadyBeforeAnythingStarts(t *testing.T) {
	spec := `  containers:
  - {name: app, image: i:1, volumeMounts: [{name: file, mountPath: /f}, {name: dir, mountPath: /d}, {name: empty, mountPath: /e}]}
  volumes:
  - {name: file, hostPath: {path: /h/f, type: FileOrCreate}}
  - {name: dir, hostPath: {path: /h, type: DirectoryOrCreate}}
  - {name: empty, emptyDir: {}}
  - {name: unused, emptyDir: {}}
`
	for name, c := range map[string]struct {
		states string
		set    func(w *modeltest.World)
		want   []string
	}{
		"a new pod": {"", func(w *modeltest.World) { w.Sandboxes = nil }, []string{
			"prepare-volume/dir VolumeMissing", "prepare-volume/empty VolumeMissing",
			"prepare-volume/file VolumeMissing after prepare-volume/dir",
			"check-app BeforeStart after prepare-volume/dir,prepare-volume/empty,prepare-volume/file",
			"run-sandbox SandboxMissing after prepare-volume/dir,prepare-volume/empty,prepare-volume/file",
			"start-app NotCreated after run-sandbox,check-app",
		}},
		"some are ready": {"", func(w *modeltest.World) {
			w.Volumes["dir"], w.Volumes["empty"] = model.Volume{Prepared: true}, model.Volume{Prepared: false}
		}, []string{
			"prepare-volume/empty VolumeMissing", "prepare-volume/file VolumeMissing",
			"check-app BeforeStart after prepare-volume/empty,prepare-volume/file",
			"start-app NotCreated after check-app",
		}},
		"the container runs": {"app=Running", func(*modeltest.World) {}, []string{}},
		"the container runs, and content changed": {"app=Running", func(w *modeltest.World) {
			w.Volumes["empty"] = model.Volume{Prepared: true, Digest: "a", Wanted: "b"}
		}, []string{"update-volume/empty ContentChanged"}},
	} {
		w := web(t, spec, c.states)
		c.set(w)
		if diff := cmp.Diff(c.want, lines(makePlan(w))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestPulls checks that each image is pulled once for all containers. An image that is present is pulled again only for
// containers that ask for it.
func TestPulls(t *testing.T) {
	spec := `  containers:
  - {name: a, image: "i:1", imagePullPolicy: Always}
  - {name: b, image: "i:1", imagePullPolicy: IfNotPresent, volumeMounts: [{name: d, mountPath: /d}]}
  - {name: c, image: "i:2"}
  volumes: [{name: d, image: {reference: "d:1"}}]
`
	for name, c := range map[string]struct {
		images string
		opts   Options
		want   []string
	}{
		"all are there": {"i:1 i:2 d:1", Options{}, []string{
			"pull-a PullAlways", "check-a BeforeStart after pull-a", "check-b BeforeStart", "check-c BeforeStart",
		}},
		"none is there": {"", Options{}, []string{
			"pull-a PullAlways", "pull-volume/d ImageAbsent", "pull-c ImageAbsent",
			"check-a BeforeStart after pull-a", "check-b BeforeStart after pull-a,pull-volume/d", "check-c BeforeStart after pull-c",
		}},
		"all are pulled": {"i:1 i:2 d:1", Options{PullPolicy: v1.PullAlways}, []string{
			"pull-a PullAlways", "pull-volume/d PullAlways", "pull-c PullAlways",
			"check-a BeforeStart after pull-a", "check-b BeforeStart after pull-a,pull-volume/d", "check-c BeforeStart after pull-c",
		}},
		"all are images of other pods": {"i:1? i:2? d:1?", Options{}, []string{
			"pull-a PullAlways", "pull-volume/d ImageUnverified", "pull-c ImageUnverified",
			"check-a BeforeStart after pull-a", "check-b BeforeStart after pull-a,pull-volume/d", "check-c BeforeStart after pull-c",
		}},
		"none is pulled": {
			"i:1 i:2 d:1",
			Options{PullPolicy: v1.PullNever},
			[]string{"check-a BeforeStart", "check-b BeforeStart", "check-c BeforeStart"},
		},
	} {
		w := web(t, spec, "")
		w.Images = map[string]model.Image{"i:1": {}, "i:2": {}, "d:1": {}}
		for ref := range strings.FieldsSeq(c.images) {
			image, unverified := strings.CutSuffix(ref, "?")
			w.Images[image] = model.Image{ID: "sha256:" + image, Unverified: unverified}
		}
		in := inputOf(w)
		in.Options = c.opts
		if diff := cmp.Diff(c.want, stepsOf(Make(in), PullImage, CheckContainer)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestUnobservedImagesAreNotPulled checks that an image of unknown state is not pulled.
func TestUnobservedImagesAreNotPulled(t *testing.T) {
	w := web(t, "  containers: [{name: a, image: i:1}]\n", "")
	w.Images = nil
	if got := stepsOf(makePlan(w), PullImage); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// TestLogsAreRotated checks that only logs of running containers are rotated.
func TestLogsAreRotated(t *testing.T) {
	for name, c := range map[string]struct {
		states string
		set    func(w *modeltest.World)
		want   []string
	}{
		"the container runs":      {"app=Running", nil, []string{"rotate-log-app-0-of-s0 LogFull"}},
		"the container has ended": {"app=Exited", nil, nil},
		"the container is stopped": {"app=Running", func(w *modeltest.World) {
			edited(t, w, modeltest.Pod("  containers: [{name: app, image: i:2}]\n"))
		}, nil},
		"its pod is stopped": {"app=Running", func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "v1:00" }, nil},
	} {
		w := web(t, "  containers: [{name: app, image: i:1}]\n", c.states)
		w.Containers[0].LogFull = true
		if c.set != nil {
			c.set(w)
		}
		if diff := cmp.Diff(c.want, stepsOf(makePlan(w), RotateLog)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestGraceOfAStop checks the order: the user's value, the failed probe's, the pod's, or the one the container was
// created with, and never less than a kubelet gives.
func TestGraceOfAStop(t *testing.T) {
	grace := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		pod, user, record, probe *int64
		gone, ends               bool
		want                     int64
		hook                     bool
	}{
		"the pod's":                  {pod: grace(40), record: grace(50), want: 40, hook: true},
		"the probe's":                {pod: grace(40), probe: grace(7), want: 7, hook: true},
		"the user's":                 {pod: grace(40), probe: grace(7), user: grace(3), want: 3, hook: true},
		"none":                       {pod: grace(0), want: 2},
		"a second":                   {pod: grace(1), want: 2, hook: true},
		"none in a terminating pod":  {pod: grace(0), ends: true, want: 2, hook: true},
		"zero seconds from the user": {pod: grace(40), user: grace(0), want: 0},
		"one second from the user":   {pod: grace(40), user: grace(1), want: 1, hook: true},
		"removed from the manifest, own grace period":        {pod: grace(40), record: grace(50), gone: true, want: 50, hook: true},
		"removed from the manifest, grace period of the pod": {pod: grace(40), gone: true, want: 40, hook: true},
		"more than a runtime counts":                         {pod: grace(1 << 40), want: 1<<31 - 1, hook: true},
	} {
		w := web(t, "  containers: [{name: app, image: i:1, lifecycle: {preStop: {exec: {command: [a]}}}}]\n", "app=Running")
		w.Desired.Pod.Spec.TerminationGracePeriodSeconds = c.pod
		rec := &w.Containers[0]
		rec.GracePeriod, rec.PreStop = c.record, "sleep"
		in := inputOf(w)
		in.Options.GracePeriod = c.user
		l := &layout{Pod: in.State(), opts: &in.Options, decision: &decision{choice: choice{terminal: c.ends}}}
		k := kill{container: rec, grace: c.probe}
		hook := "sleep"
		if !c.gone {
			k.ref, hook = l.refOf(rec), "exec"
		}
		stopper{l}.stopContainer(k, nil)
		s := l.steps[0]
		if *s.GracePeriodSeconds != c.want || (s.PreStop == hook) != c.hook || (s.PreStop == "") == c.hook {
			t.Errorf("%s: %d seconds, hook %q", name, *s.GracePeriodSeconds, s.PreStop)
		}
	}
}

// TestDefaultGracePeriod checks the default if no grace period is set.
func TestDefaultGracePeriod(t *testing.T) {
	w := web(t, "  containers: [{name: app, image: i:1}]\n", "app=Running")
	p := makeDeletion(w, Options{})
	if got := *p.Steps[0].GracePeriodSeconds; got != ShortestStop || p.LongestGrace() != ShortestStop {
		t.Errorf("%d seconds, at most %d", got, p.LongestGrace())
	}
}

// TestStopsOfAPod checks that all stops begin at once, and that sidecars end after regular containers in reverse order.
func TestStopsOfAPod(t *testing.T) {
	spec := `  initContainers:
  - {name: s1, image: i:1, restartPolicy: Always}
  - {name: init, image: i:1}
  - {name: s2, image: i:1, restartPolicy: Always}
  containers: [{name: a, image: i:1}, {name: b, image: i:1}]
`
	w := web(t, spec, "s1=Running s2=Running a=Running b=Exited stray=Running")
	w.Memory.Applied = w.Desired
	want := []string{
		"stop-a-0-of-s0 Deleted", "stop-stray-0-of-s Deleted",
		"stop-s2-0-of-s0 Deleted ends after stop-a-0-of-s0,stop-stray-0-of-s",
		"stop-s1-0-of-s0 Deleted ends after stop-a-0-of-s0,stop-stray-0-of-s,stop-s2-0-of-s0",
	}
	if diff := cmp.Diff(want, stepsOf(makeDeletion(w, Options{}), StopContainer)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestStopKeepsItsOwnCause checks the cause of a container that would stop even if its pod stayed. The decision is not
// modified.
func TestStopKeepsItsOwnCause(t *testing.T) {
	spec := "  restartPolicy: Never\n" +
		"  containers: [{name: app, image: i:1, livenessProbe: {exec: {command: [a]}, " +
		"terminationGracePeriodSeconds: 5}}]\n"
	w := web(t, spec, "app=Running")
	w.Probed("app-0-of-s0", model.Liveness, model.ProbeFailure, 0)
	p := makePlan(w)
	want := []string{"stop-app-0-of-s0 LivenessFailed", "stop-sandbox-s0 Completed after stop-app-0-of-s0"}
	if diff := cmp.Diff(want, lines(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The whole pod stops, so the pod's grace period counts.
	if got := *p.Steps[0].GracePeriodSeconds; got != 30 {
		t.Errorf("%d seconds", got)
	}
}

// TestSandboxesAreStoppedOnce checks that a sandbox that ended by itself is stopped for its network, and one that
// podctl stopped is not stopped again.
func TestSandboxesAreStoppedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		stopped []string
		want    []string
	}{
		"sandbox ended by itself": {nil, []string{"stop-sandbox-s0 SandboxNotReady"}},
		"podctl stopped it":       {[]string{"s0"}, nil},
		"another one":             {[]string{"s9"}, []string{"stop-sandbox-s0 SandboxNotReady"}},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxNotReady)
		w.Memory.LastRun = &model.LastRun{Sandbox: "s0", Stopped: c.stopped}
		if diff := cmp.Diff(c.want, stepsOf(makePlan(w), StopSandbox)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	w := web(t, "  restartPolicy: Never\n  containers: [{name: app, image: i:1}]\n", "app=Exited")
	w.Sandboxes[0].State = model.SandboxNotReady
	if got := lines(makePlan(w)); len(got) > 0 {
		t.Errorf("a pod that has finished: %v", got)
	}
	// Its stop was interrupted: the runtime has ended the sandbox and may still have its network.
	w.Memory.LastRun = &model.LastRun{Sandbox: "s0"}
	if diff := cmp.Diff([]string{"stop-sandbox-s0 Completed"}, stepsOf(makePlan(w), StopSandbox)); diff != "" {
		t.Errorf("a finished pod whose sandbox the last pass left running: (-want +got)\n%s", diff)
	}
	w.Memory.LastRun.Stopped = []string{"s0"}
	if got := lines(makePlan(w)); len(got) > 0 {
		t.Errorf("a finished pod whose sandbox was stopped: %v", got)
	}
}

// TestDeletionStopsASandboxOnce checks that a deletion does not stop a sandbox again that podctl has stopped.
func TestDeletionStopsASandboxOnce(t *testing.T) {
	for _, c := range []struct {
		state   model.SandboxState
		stopped []string
		want    []string
	}{
		{model.SandboxNotReady, []string{"s0"}, nil},
		{model.SandboxNotReady, nil, []string{"stop-sandbox-s0 Deleted"}},
		{model.SandboxReady, []string{"s0"}, []string{"stop-sandbox-s0 Deleted"}},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, c.state)
		w.Memory.LastRun = &model.LastRun{Sandbox: "s0", Stopped: c.stopped}
		p := makeDeletion(w, Options{})
		if diff := cmp.Diff(c.want, stepsOf(p, StopSandbox)); diff != "" || len(stepsOf(p, RemoveSandbox)) != 1 {
			t.Errorf("%s, stopped %v: (-want +got)\n%s", c.state, c.stopped, diff)
		}
	}
}

// TestResetStopsAndRemovesOneByOne checks that no hooks run, that the shortest grace period is used, and that logs of
// older runs are removed.
func TestResetStopsAndRemovesOneByOne(t *testing.T) {
	spec := `  containers:
  - name: app
    image: i:1
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [4]}}]
  - {name: log, image: i:1, lifecycle: {preStop: {exec: {command: [a]}}}}
`
	p := makePlan(web(t, spec, "app=Exited:4 log=Running"))
	want := []string{
		"stop-log-0-of-s0 RestartAllContainers",
		"remove-log-0-of-s0 RestartAllContainers after stop-log-0-of-s0",
		"remove-app-0-of-s0 RestartAllContainers after remove-log-0-of-s0",
	}
	if diff := cmp.Diff(want, lines(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s := p.Steps[0]; s.PreStop != "" || *s.GracePeriodSeconds != ShortestStop || s.RestartsAll {
		t.Errorf("%+v", s)
	}
	for _, s := range p.Steps[1:] {
		if s.Logs != RemoveOlderLogs || !s.RestartsAll || s.OnFailure != Abort {
			t.Errorf("%+v", s)
		}
	}
	if diff := cmp.Diff([]string{"the next pass, which starts from the first container again"}, p.WaitingFor); diff != "" || p.Complete {
		t.Errorf("complete %t (-want +got)\n%s", p.Complete, diff)
	}
}

// TestLogsAreRemovedWithRecords checks that logs without a use are removed. For a container that continues under its
// name, these are the logs before the newest.
func TestLogsAreRemovedWithRecords(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(w *modeltest.World)
		want map[string]Logs
	}{
		"removed from the manifest": {
			func(w *modeltest.World) { w.States("gone=Exited") },
			map[string]Logs{"remove-gone-0-of-s0": RemoveOwnLogs},
		},
		"never started": {
			func(w *modeltest.World) { w.Container("s0", "app", 1, model.Created) },
			map[string]Logs{"remove-app-1-of-s0": RemoveOwnLogs},
		},
		"a newer one starts": {func(w *modeltest.World) {
			w.Container("s0", "app", 1, model.Exited)
			w.Containers[1].State = model.Exited
		}, map[string]Logs{"remove-app-0-of-s0": RemoveSupersededLogs}},
		"a new sandbox": {
			func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "v1:00" },
			map[string]Logs{"remove-seed-0-of-s0": RemoveOwnLogs},
		},
	} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		c.set(w)
		got := map[string]Logs{}
		for _, s := range makePlan(w).Steps {
			if s.Kind == RemoveContainer {
				got[s.ID] = s.Logs
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	for _, s := range makeDeletion(modeltest.Running(modeltest.Load(t, modeltest.WebPod)), Options{}).Steps {
		if s.Logs != KeepLogs {
			t.Errorf("a deletion removes logs instead of archiving them: %+v", s)
		}
	}
}

// TestStartsFollowOneAnother checks that init containers and sidecars start in order, regular containers after a hook,
// and debug containers after the container they join.
func TestStartsFollowOneAnother(t *testing.T) {
	spec := `  initContainers: [{name: s1, image: i:1, restartPolicy: Always}, {name: s2, image: i:1, restartPolicy: Always}]
  containers:
  - {name: a, image: i:1}
  - {name: b, image: i:1, lifecycle: {postStart: {exec: {command: [a]}}}}
  - {name: c, image: i:1}
  ephemeralContainers: [{name: look, image: i:1, targetContainerName: c}, {name: see, image: i:1}]
`
	w := web(t, spec, "s1=Exited s2=Running")
	want := []string{
		"start-s1 Exited after check-s1",
		"start-a NotCreated after check-a,start-s1",
		"start-b NotCreated after check-b,start-s1",
		"start-c NotCreated after check-c,start-b",
		"start-look NotCreated after check-look,start-c",
		"start-see NotCreated after check-see",
	}
	p := makePlan(w)
	if diff := cmp.Diff(want, stepsOf(p, StartContainer)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, s := range p.Steps {
		if s.Kind == StartContainer && (s.SandboxID != "s0" || s.OnFailure != Continue) {
			t.Errorf("%s in %q, %s", s.ID, s.SandboxID, s.OnFailure)
		}
	}
}

// TestFailedStarts checks that an init container that cannot start ends the pass.
func TestFailedStarts(t *testing.T) {
	p := makePlan(modeltest.New(modeltest.Load(t, modeltest.WebPod)))
	for _, s := range p.Steps {
		if s.Kind == StartContainer && (s.OnFailure != Abort || s.SandboxID != "") {
			t.Errorf("%s: %s, in %q", s.ID, s.OnFailure, s.SandboxID)
		}
	}
	if len(p.Later) != 1 || p.Later[0] != "app, log (when seed has exited 0)" {
		t.Errorf("later %q", p.Later)
	}
}

// TestOldSandboxesAreRemoved checks that sandboxes without records are removed, but not the newest one and not one that
// is ready.
func TestOldSandboxesAreRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(w *modeltest.World)
		want []string
	}{
		"none is old": {func(*modeltest.World) {}, nil},
		"an old one":  {func(w *modeltest.World) { w.Sandbox("old", 0, model.SandboxNotReady) }, []string{"remove-sandbox-old Superseded"}},
		"an old one with the record that counts": {func(w *modeltest.World) {
			w.Sandbox("old", 0, model.SandboxNotReady).Container("old", "job", 0, model.Exited)
		}, nil},
		"an old one with a removed record": {func(w *modeltest.World) {
			w.Sandbox("old", 0, model.SandboxNotReady).Container("old", "gone", 0, model.Exited)
		}, []string{"remove-sandbox-old Superseded after remove-gone-0-of-ol"}},
		"the one that is replaced": {func(w *modeltest.World) {
			w.Sandboxes[0].State, w.Containers = model.SandboxNotReady, nil
		}, []string{"remove-sandbox-s0 Superseded after run-sandbox,stop-sandbox-s0"}},
	} {
		w := web(t, "  containers: [{name: app, image: i:1}, {name: job, image: i:1, restartPolicy: Never}]\n", "app=Running")
		w.Sandboxes[0].Attempt = 1
		c.set(w)
		if diff := cmp.Diff(c.want, stepsOf(makePlan(w), RemoveSandbox)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestSurplusRecordsAreRemoved checks that the newest dead record stays when the container starts.
func TestSurplusRecordsAreRemoved(t *testing.T) {
	w := web(t, "  containers: [{name: app, image: i:1}]\n", "")
	for attempt := range uint32(4) {
		w.Container("s0", "app", attempt, model.Exited)
	}
	w.Containers[1].State = model.Unknown
	want := []string{
		"start-app Exited after check-app",
		"remove-app-2-of-s0 Superseded", "remove-app-1-of-s0 Superseded", "remove-app-0-of-s0 Superseded",
	}
	if diff := cmp.Diff(want, stepsOf(makePlan(w), StartContainer, RemoveContainer)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestDeletionUsesAnnotations checks that without the applied manifest the annotations of the containers give hook
// and grace period.
func TestDeletionUsesAnnotations(t *testing.T) {
	d := modeltest.Load(t,
		modeltest.Pod(
			"  terminationGracePeriodSeconds: 9\n"+
				"  containers: [{name: app, image: i:1, lifecycle: {preStop: {sleep: {seconds: 1}}}}]\n"))
	for name, applied := range map[string]bool{"9 sleep": true, "11 exec": false} {
		w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady).States("app=Running")
		own := int64(11)
		w.Containers[0].GracePeriod, w.Containers[0].PreStop = &own, "exec"
		if applied {
			w.Memory.Applied = d
		}
		s := makeDeletion(w, Options{}).Steps[0]
		if got := strings.TrimPrefix(s.Detail(), "app-0-of-s0  grace "); strings.NewReplacer("s, preStop", "").Replace(got) != name {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestDeletionOfAMissingPod checks that a pod that was never applied and does not exist needs no steps. An applied pod
// leaves files.
func TestDeletionOfAMissingPod(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, modeltest.WebPod))
	if p := makeDeletion(w, Options{}); len(p.Steps) > 0 || !p.Complete {
		t.Errorf("%v", lines(p))
	}
	w.Memory.Generation = 1
	want := []string{"remove-volumes Deleted", "remove-cgroup Deleted", "archive-logs Deleted"}
	if diff := cmp.Diff(want, lines(makeDeletion(w, Options{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for claims, want := range map[bool]string{false: "the pod is deleted", true: "the pod is deleted, with its claims"} {
		if got := makeDeletion(w, Options{RemoveVolumes: claims}).Steps[0].Message; got != want {
			t.Errorf("RemoveVolumes %t: %s", claims, got)
		}
	}
}

// TestStoredManifestDoesNotCancelADeletion checks that podctl's own copy of a manifest does not cancel a deletion.
func TestStoredManifestDoesNotCancelADeletion(t *testing.T) {
	for stored, held := range map[bool]bool{true: true, false: false} {
		w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
		w.Memory.Deletion, w.Desired.Stored = &model.Deletion{}, stored
		p := makePlan(w)
		if (len(p.Holds) == 1) != held || len(p.Steps) > 0 || p.Complete == held {
			t.Errorf("stored %t: %v", stored, lines(p))
		}
		if held && (!p.Holds[0].Blocking || p.Holds[0].Reason != model.Deleted) {
			t.Errorf("%+v", p.Holds[0])
		}
	}
}

// TestHeldPodGetsNoSteps also checks that the pod is not killed and gets no new sandbox.
func TestHeldPodGetsNoSteps(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, strings.Replace(modeltest.WebPod, "spec:", "spec:\n  runtimeClassName: kata", 1)))
	w.Sandboxes[0].SpecHash, w.Runtime.Handlers = "v1:00", []string{""}
	w.End("app", 1, time.Hour)
	p := makePlan(w)
	if p.KillPod || p.CreateSandbox || len(p.Steps) > 0 || len(p.Holds) != 1 || p.Complete {
		t.Errorf("KillPod %t, CreateSandbox %t: %v", p.KillPod, p.CreateSandbox, lines(p))
	}
	if p.SandboxID != "s0" || p.Attempt != 1 {
		t.Errorf("sandbox %s, attempt %d", p.SandboxID, p.Attempt)
	}
}

// TestEffectOfFailures checks the effect of failed steps. The pass ends if half of the work would be left undone. A
// failed check or pull affects only its container. Everything else waits for the next pass.
func TestEffectOfFailures(t *testing.T) {
	want := map[Kind]OnFailure{
		CreateCgroup: Abort, PrepareVolume: Abort, UpdateVolume: Abort, PullImage: SkipContainer, CheckContainer: SkipContainer,
		RunSandbox: Abort, StopSandbox: Abort, StopContainer: Abort, RemoveSandbox: Continue, RemoveContainer: Continue,
		StartContainer: Continue, UpdateContainer: Continue, UpdatePod: Continue, RotateLog: Continue,
	}
	spec := "  containers: [{name: app, image: i:1, volumeMounts: [{name: v, mountPath: /v}, {name: u, " +
		"mountPath: /u}]}, {name: log, image: i:1, resources: {limits: {cpu: %d}, requests: {cpu: 1m}}}]\n" +
		"  volumes: [{name: v, emptyDir: {}}, {name: u, emptyDir: {}}]\n"
	recreated := web(t, fmt.Sprintf(spec, 1), "gone=Exited app=Running")
	recreated.Sandbox("old", 0, model.SandboxNotReady)
	recreated.Sandboxes[0].Attempt, recreated.Sandboxes[0].SpecHash, recreated.CgroupExists = 1, "v1:00", new(false)
	recreated.Images["i:1"], recreated.Volumes["u"] = model.Image{}, model.Volume{Prepared: true, Digest: "a", Wanted: "b"}
	changed := web(t, fmt.Sprintf(spec, 1), "app=Running log=Running")
	changed.Memory.Actuated, changed.Containers[0].LogFull = actuatedOf(changed), true
	edited(t, changed, modeltest.Pod(fmt.Sprintf(spec, 2)))
	seen := map[Kind]bool{}
	for _, w := range []*modeltest.World{recreated, changed} {
		for _, s := range makePlan(w).Steps {
			if seen[s.Kind] = true; s.OnFailure != want[s.Kind] {
				t.Errorf("%s: got %s, want %s", s.ID, s.OnFailure, want[s.Kind])
			}
		}
	}
	for kind := range want {
		if !seen[kind] {
			t.Errorf("no step of kind %s was tested", kind)
		}
	}
	for _, s := range makeDeletion(recreated, Options{}).Steps {
		want := Abort
		if s.Kind == RemoveCgroup || s.Kind == ArchiveLogs {
			want = Continue
		}
		if s.OnFailure != want {
			t.Errorf("a deletion: %s: %s", s.ID, s.OnFailure)
		}
	}
}
