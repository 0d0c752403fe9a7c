package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/podstatus"
)

func inputOf(w *modeltest.World) *Input {
	return &Input{Pod: model.RefOf(w.Desired.Pod), Input: podstatus.Input{Desired: w.Desired, Observed: w.Observed, Now: modeltest.Noon()}}
}

func makePlan(w *modeltest.World) *Plan { return Make(inputOf(w)) }

// makeDeletion returns the plan for the deletion of a pod with only its applied manifest known.
func makeDeletion(w *modeltest.World, opts Options) *Plan {
	in := inputOf(w)
	in.Desired, in.Options = nil, opts
	return Make(in)
}

// lines describes the steps of a plan: ID, reason and needs.
func lines(p *Plan) []string {
	out := []string{}
	for i := range p.Steps {
		s := &p.Steps[i]
		line := s.ID + " " + string(s.Reason)
		for _, part := range []struct {
			text  string
			needs Needs
		}{
			{" after ", s.Needs.Of(Begin)},
			{" ends after ", s.Needs.Of(Stop)},
			{" created after ", s.Needs.Of(Create)},
			{" once exited ", s.Needs.where(func(e Edge) bool { return e.Until == Exited })},
		} {
			if len(part.needs) > 0 {
				line += part.text + strings.Join(part.needs.steps(), ",")
			}
		}
		out = append(out, line)
	}
	for _, h := range p.Holds {
		out = append(out, fmt.Sprintf("hold %s %s %s", h.Container, h.Reason, h.Message))
	}
	return out
}

func TestMake(t *testing.T) {
	cases := map[string]struct {
		world func(d *podspec.Desired) *modeltest.World
		// edit changes the manifest after the world was built from it.
		edit func(d *podspec.Desired)
		want []string
	}{
		"a new pod starts with its sandbox and first init container": {
			world: modeltest.New,
			want: []string{
				"check-seed BeforeStart",
				"run-sandbox SandboxMissing",
				"start-seed NotCreated after run-sandbox,check-seed",
			},
		},
		"a pod that runs as wanted needs nothing": {world: modeltest.Running, want: []string{}},
		"after a finished init container the regular ones start in parallel": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
				w.Container("s0", "seed", 0, model.Exited)
				return w
			},
			want: []string{
				"check-app BeforeStart",
				"check-log BeforeStart",
				"start-app NotCreated after check-app",
				"start-log NotCreated after check-log",
			},
		},
		"a changed image pulls and proves before it stops": {
			world: modeltest.Running,
			edit:  func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "i:2" },
			want: []string{
				"check-app BeforeStart",
				"stop-app-0-of-s0 SpecChanged after check-app",
				"start-app SpecChanged after check-app,stop-app-0-of-s0 created after check-app once exited stop-app-0-of-s0",
			},
		},
		"a changed hostname stops no container of a pod that runs once": {
			world: modeltest.Running,
			edit: func(d *podspec.Desired) {
				d.Pod.Spec.Hostname, d.Pod.Spec.RestartPolicy = "other", v1.RestartPolicyNever
			},
			want: []string{
				"hold  SandboxConfigChanged the pod's sandbox settings changed, " +
					"and a pod with restartPolicy Never gets no other sandbox; delete it to run it again",
			},
		},
		"a changed hostname replaces the sandbox after everything is proven": {
			world: modeltest.Running,
			edit:  func(d *podspec.Desired) { d.Pod.Spec.Hostname = "other" },
			want: []string{
				"check-seed BeforeStart",
				"check-app BeforeStart",
				"check-log BeforeStart",
				"stop-app-0-of-s0 SandboxConfigChanged after check-seed,check-app,check-log",
				"stop-log-0-of-s0 SandboxConfigChanged after check-seed,check-app,check-log",
				"stop-sandbox-s0 SandboxConfigChanged after check-seed,check-app,check-log,stop-app-0-of-s0,stop-log-0-of-s0",
				"remove-seed-0-of-s0 SandboxReplaced after stop-app-0-of-s0,stop-log-0-of-s0,stop-sandbox-s0",
				"run-sandbox SandboxConfigChanged after stop-app-0-of-s0,stop-log-0-of-s0,stop-sandbox-s0",
				"start-seed SandboxReplaced after run-sandbox,check-seed,remove-seed-0-of-s0",
			},
		},
		"a sandbox without running containers is replaced even without proof": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.New(d).Sandbox("s0", 0, model.SandboxNotReady)
				w.Container("s0", "seed", 0, model.Exited)
				w.Container("s0", "app", 0, model.Exited)
				return w
			},
			want: []string{
				"check-seed BeforeStart",
				"stop-sandbox-s0 SandboxNotReady",
				"remove-seed-0-of-s0 SandboxReplaced after stop-sandbox-s0",
				"run-sandbox SandboxNotReady after stop-sandbox-s0",
				"start-seed SandboxReplaced after run-sandbox,check-seed,remove-seed-0-of-s0",
			},
		},
		"a crashed container is held": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.Running(d)
				c := &w.Containers[1]
				c.State, c.ExitCode, c.FinishedAt = model.Exited, 1, modeltest.Noon().Add(-5*time.Second)
				w.Memory.Backoffs["app"] = model.Backoff{Duration: 10 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
				return w
			},
			want: []string{"hold app CrashLoopBackOff back-off 10s, exit code 1"},
		},
		"without memory the delay is an estimate": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.Running(d)
				w.Memory.Backoffs = nil
				c := &w.Containers[1]
				c.State, c.ExitCode, c.FinishedAt, c.RestartCount = model.Exited, 1, modeltest.Noon().Add(-5*time.Second), 4
				return w
			},
			want: []string{"hold app CrashLoopBackOff back-off 10s, exit code 1, at least (estimated from the runtime's records)"},
		},
		"a container that left the manifest is stopped and removed": {
			world: modeltest.Running,
			edit:  func(d *podspec.Desired) { d.Pod.Spec.Containers = d.Pod.Spec.Containers[:1] },
			want: []string{
				"stop-log-0-of-s0 RemovedFromSpec",
				"remove-log-0-of-s0 RemovedFromSpec after stop-log-0-of-s0",
			},
		},
		"starts wait for all stops": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.Running(d)
				w.Container("s0", "old", 0, model.Running)
				ended := &w.Containers[2]
				ended.State, ended.ExitCode, ended.FinishedAt = model.Exited, 1, modeltest.Noon().Add(-time.Hour)
				return w
			},
			edit: func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "i:2" },
			want: []string{
				"check-app BeforeStart",
				"check-log BeforeStart",
				"stop-app-0-of-s0 SpecChanged after check-app",
				"stop-old-0-of-s0 RemovedFromSpec",
				"remove-old-0-of-s0 RemovedFromSpec after stop-old-0-of-s0",
				"start-app SpecChanged after check-app,stop-app-0-of-s0,stop-old-0-of-s0 " +
					"created after check-app once exited stop-app-0-of-s0,stop-old-0-of-s0",
				"start-log Exited after check-log,stop-app-0-of-s0,stop-old-0-of-s0 once exited stop-app-0-of-s0,stop-old-0-of-s0",
			},
		},
		"a record that was never started is removed for the next attempt": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
				w.Container("s0", "seed", 0, model.Exited)
				w.Container("s0", "app", 0, model.Created)
				w.Container("s0", "log", 0, model.Running)
				return w
			},
			want: []string{
				"check-app BeforeStart",
				"remove-app-0-of-s0 NeverStarted",
				"start-app NeverStarted after check-app,remove-app-0-of-s0",
			},
		},
		"a replacement that was created before its pass was interrupted takes nothing's place": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.Running(d)
				w.Container("s0", "app", 3, model.Created)
				return w
			},
			want: []string{"remove-app-3-of-s0 NeverStarted"},
		},
		"a replacement that is proven lets the record before the last one go": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
				w.Container("s0", "seed", 0, model.Exited)
				w.Container("s0", "app", 0, model.Exited)
				w.Container("s0", "app", 1, model.Running)
				w.Container("s0", "log", 0, model.Running)
				return w
			},
			edit: func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "i:2" },
			want: []string{
				"check-app BeforeStart",
				"stop-app-1-of-s0 SpecChanged after check-app",
				"start-app SpecChanged after check-app,stop-app-1-of-s0 created after check-app once exited stop-app-1-of-s0",
				"remove-app-0-of-s0 Superseded after check-app",
			},
		},
		"superseded containers are stopped": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.Running(d)
				w.Container("s0", "app", 1, model.Running)
				return w
			},
			want: []string{"stop-app-0-of-s0 Superseded"},
		},
		"a replacement of an interrupted pass is continued": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.Running(d)
				w.Container("s0", "app", 1, model.Created)
				return w
			},
			edit: func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "i:2" },
			want: []string{
				"check-app BeforeStart",
				"stop-app-0-of-s0 SpecChanged after check-app",
				"remove-app-1-of-s0 NeverStarted",
				"start-app SpecChanged after check-app,stop-app-0-of-s0,remove-app-1-of-s0 " +
					"created after check-app,remove-app-1-of-s0 once exited stop-app-0-of-s0",
			},
		},
		"a network that is not ready holds a new pod": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.New(d)
				ready := false
				w.Runtime.NetworkReady, w.Runtime.NetworkMessage = &ready, "no CNI configuration"
				return w
			},
			want: []string{"hold  NetworkNotReady no CNI configuration"},
		},
		"an absent image that may not be pulled stops nothing": {
			world: modeltest.Running,
			edit: func(d *podspec.Desired) {
				d.Pod.Spec.Containers[0].Image, d.Pod.Spec.Containers[0].ImagePullPolicy = "i:2", v1.PullNever
			},
			want: []string{"hold app ErrImageNeverPull Container image \"i:2\" is not present with pull policy of Never"},
		},
		"init containers are judged by the active sandbox alone": {
			world: func(d *podspec.Desired) *modeltest.World {
				w := modeltest.New(d).Sandbox("s0", 0, model.SandboxNotReady).Sandbox("s1", 1, model.SandboxReady)
				w.Container("s0", "seed", 0, model.Exited)
				w.Container("s0", "app", 0, model.Created)
				return w
			},
			want: []string{
				"check-seed BeforeStart",
				"remove-app-0-of-s0 NeverStarted",
				"start-seed NotCreated after check-seed",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := modeltest.Load(t, modeltest.WebPod)
			w := c.world(d)
			if c.edit != nil {
				d = modeltest.Load(t, modeltest.WebPod)
				c.edit(d)
				w.Desired = d
				for _, ref := range podspec.Containers(d.Pod) {
					if _, known := w.Images[ref.Image]; !known && ref.ImagePullPolicy != v1.PullNever {
						w.Images[ref.Image] = model.Image{ID: "new"}
					} else if !known {
						w.Images[ref.Image] = model.Image{}
					}
				}
			}
			p := makePlan(w)
			if diff := cmp.Diff(c.want, lines(p)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if again := makePlan(w); !sameJSON(t, p, again) {
				t.Error("two plans from the same input differ")
			}
			checkOrder(t, p)
		})
	}
}

func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

// checkOrder checks that each ID appears once, and that a step needs only steps before it.
func checkOrder(t *testing.T, p *Plan) {
	t.Helper()
	var seen []string
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, e := range s.Needs {
			if !slices.Contains(seen, e.Step) {
				t.Errorf("step %s needs %s, which is not listed before it", s.ID, e.Step)
			}
		}
		if slices.Contains(seen, s.ID) {
			t.Errorf("two steps have the id %s", s.ID)
		}
		seen = append(seen, s.ID)
	}
}

// TestStepNamesAreUnique uses containers and volumes whose names resemble podctl's own step names.
func TestStepNamesAreUnique(t *testing.T) {
	d := modeltest.Load(t, `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: pod, image: i:1, resources: {limits: {cpu: "2"}}}
  - {name: volume-data, image: i:4, resources: {limits: {cpu: "2"}}, volumeMounts: [{name: data, mountPath: /d}]}
  - {name: volume-x, image: i:2, resources: {limits: {cpu: "2"}}, volumeMounts: [{name: x, mountPath: /x}]}
  volumes:
  - {name: data, image: {reference: "i:3"}}
  - {name: x, emptyDir: {}}
`)
	absent := modeltest.New(d)
	absent.Images = map[string]model.Image{"i:1": {}, "i:2": {}, "i:3": {}, "i:4": {}}
	resized := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
	resized.Memory.Actuated = &model.Actuated{Containers: map[string]v1.ResourceRequirements{}}
	resized.Volumes["x"] = model.Volume{Prepared: true, Digest: "a", Wanted: "b"}
	for _, name := range []string{"pod", "volume-data", "volume-x"} {
		resized.Container("s0", name, 0, model.Running)
	}
	for _, w := range []*modeltest.World{absent, resized} {
		if p := makePlan(w); len(p.Steps) < 5 {
			t.Errorf("the plan has too few steps for this test: %v", lines(p))
		} else {
			checkOrder(t, p)
		}
	}
}

func TestDeletionStopsInOrderAndRemovesEverything(t *testing.T) {
	d := modeltest.Load(t,
		strings.Replace(modeltest.WebPod, "{name: seed, image: i:1}", "{name: seed, image: i:1, restartPolicy: Always}",
			1))
	w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "seed", 0, model.Running)
	w.Container("s0", "app", 0, model.Running)
	w.Memory.Applied = d
	p := makeDeletion(w, Options{})
	got := lines(p)
	want := []string{
		"stop-app-0-of-s0 Deleted",
		"stop-seed-0-of-s0 Deleted ends after stop-app-0-of-s0",
		"stop-sandbox-s0 Deleted after stop-app-0-of-s0,stop-seed-0-of-s0",
	}
	if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == RemoveContainer &&
			!slices.Equal(s.Needs.steps(), []string{"stop-app-0-of-s0", "stop-seed-0-of-s0"}) {
			t.Errorf("step %s needs %v, want exactly the stops of all containers", s.ID, s.Needs)
		}
	}
	for _, kind := range []Kind{RemoveContainer, RemoveSandbox, RemoveVolume, RemoveCgroup, ArchiveLogs} {
		if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == kind }) {
			t.Errorf("no step of kind %s", kind)
		}
	}
}

// TestSidecarsDoNotWaitForDebugContainers checks that a debug container that does not end uses up no sidecar's grace
// period (kubelet: newTerminationOrdering).
func TestSidecarsDoNotWaitForDebugContainers(t *testing.T) {
	d := modeltest.Load(t,
		strings.Replace(modeltest.WebPod, "{name: seed, image: i:1}", "{name: seed, image: i:1, restartPolicy: Always}",
			1))
	d.Pod.Spec.EphemeralContainers = []v1.EphemeralContainer{
		{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i:1"}},
	}
	w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
	for _, name := range []string{"seed", "app", "debug"} {
		w.Container("s0", name, 0, model.Running)
	}
	w.Memory.Applied = d
	for _, s := range makeDeletion(w, Options{}).Steps {
		if s.Container == "seed" && s.Kind == StopContainer && !slices.Equal(s.Needs.Of(Stop).steps(), []string{"stop-app-0-of-s0"}) {
			t.Errorf("the sidecar's stop needs %v", s.Needs)
		}
	}
}

// TestHooksRunInATerminatingPod checks that a pod that ends has a second for its hooks, even with a grace period of
// zero.
func TestHooksRunInATerminatingPod(t *testing.T) {
	d := modeltest.Load(t,
		strings.Replace(modeltest.WebPod, "{name: app, image: i:1}",
			"{name: app, image: i:1, lifecycle: {preStop: {exec: {command: [a]}}}}", 1))
	none := int64(0)
	d.Pod.Spec.TerminationGracePeriodSeconds = &none
	w := modeltest.Running(d)
	w.Memory.Applied = d
	for hook, opts := range map[string]Options{"exec": {}, "": {GracePeriod: &none}} {
		for _, s := range makeDeletion(w, opts).Steps {
			if s.Container == "app" && s.Kind == StopContainer && s.PreStop != hook {
				t.Errorf("grace period %v: hook %q, want %q", opts.GracePeriod, s.PreStop, hook)
			}
		}
	}
}

func TestPostStartBlocksLaterContainers(t *testing.T) {
	d := modeltest.Load(t,
		strings.Replace(modeltest.WebPod, "{name: app, image: i:1}",
			"{name: app, image: i:1, lifecycle: {postStart: {exec: {command: [a]}}}}", 1))
	w := modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "seed", 0, model.Exited)
	for _, line := range lines(makePlan(w)) {
		if strings.HasPrefix(line, "start-log") && !strings.Contains(line, "start-app") {
			t.Errorf("%s does not wait for the hook of app", line)
		}
	}
}

// TestLongGracePeriodsDoNotOverflow uses a manifest with more seconds than a duration holds.
func TestLongGracePeriodsDoNotOverflow(t *testing.T) {
	d := modeltest.Load(t, modeltest.WebPod)
	forever := int64(1) << 60
	d.Pod.Spec.TerminationGracePeriodSeconds = &forever
	w := modeltest.Running(d)
	w.Memory.Applied = d
	for _, s := range makeDeletion(w, Options{}).Steps {
		if s.Kind == StopContainer && (model.Seconds(*s.GracePeriodSeconds) <= 0 || time.Duration(*s.GracePeriodSeconds)*time.Second <= 0) {
			t.Errorf("step %s has a grace period of %d seconds", s.ID, *s.GracePeriodSeconds)
		}
	}
	if model.Seconds(forever) <= 0 {
		t.Error("the longest grace period overflows")
	}
}
