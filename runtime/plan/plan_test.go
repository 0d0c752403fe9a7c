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
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// load reads a pod's manifest.
func load(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	return podspectest.Desired(t, text)
}

const webPod = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers:
  - {name: seed, image: i:1}
  containers:
  - {name: app, image: i:1}
  - {name: log, image: i:1}
`

// world is an observed state that is built up step by step.
type world struct {
	model.Observed
	d *podspec.Desired
}

func newWorld(d *podspec.Desired) *world {
	w := &world{d: d}
	w.Images = map[string]model.Image{}
	for _, ref := range podspec.Containers(d.Pod) {
		w.Images[ref.Image] = model.Image{ID: "sha256:" + ref.Image}
	}
	w.Volumes = map[string]model.Volume{}
	w.Runtime = model.Runtime{Name: "containerd", Version: "2.4.2"}
	w.Memory.Backoffs = map[string]model.Backoff{}
	return w
}

func (w *world) sandbox(id string, attempt uint32, state model.SandboxState) *world {
	w.Sandboxes = append(w.Sandboxes, model.Sandbox{
		ID: id, Attempt: attempt, State: state, CreatedAt: noon.Add(-time.Hour), IPs: []string{"10.0.0.2"}, SpecHash: spechash.Sandbox(w.d),
	})
	return w
}

// container adds a record that podctl made from today's manifest.
func (w *world) container(sandbox, name string, attempt uint32, state model.ContainerState) *model.Container {
	c := model.Container{
		ID: fmt.Sprintf("%s-%d-of-%s", name, attempt, sandbox), SandboxID: sandbox, Name: name, Attempt: attempt, RestartCount: attempt,
		State: state, CreatedAt: noon.Add(-time.Minute + time.Duration(attempt)*time.Second), StartedAt: noon.Add(-time.Minute),
	}
	if ref, ok := podspec.FindContainer(w.d.Pod, name); ok {
		c.SpecHash, c.Hash = spechash.Container(w.d, ref.Container), spechash.Kubelet(ref.Container)
	}
	if state == model.Exited {
		c.FinishedAt = noon.Add(-30 * time.Second)
	}
	w.Containers = append(w.Containers, c)
	return &w.Containers[len(w.Containers)-1]
}

func (w *world) make() *Plan {
	return Make(&Input{Pod: model.RefOf(w.d.Pod), Desired: w.d, Observed: w.Observed, Now: noon})
}

// running is the pod as it should be.
func running(d *podspec.Desired) *world {
	w := newWorld(d).sandbox("s0", 0, model.SandboxReady)
	w.container("s0", "seed", 0, model.Exited)
	w.container("s0", "app", 0, model.Running)
	w.container("s0", "log", 0, model.Running)
	return w
}

// lines writes a plan's steps as text: what, why and after what.
func lines(p *Plan) []string {
	out := []string{}
	for i := range p.Steps {
		s := &p.Steps[i]
		line := s.ID + " " + string(s.Reason)
		if len(s.After) > 0 {
			line += " after " + strings.Join(s.After, ",")
		}
		if len(s.StopAfter) > 0 {
			line += " ends after " + strings.Join(s.StopAfter, ",")
		}
		if len(s.CreateAfter) > 0 {
			line += " created after " + strings.Join(s.CreateAfter, ",")
		}
		if len(s.AfterExit) > 0 {
			line += " once exited " + strings.Join(s.AfterExit, ",")
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
		world func(d *podspec.Desired) *world
		// edit changes the manifest after the world was built from it.
		edit func(d *podspec.Desired)
		want []string
	}{
		"a new pod starts with its sandbox and first init container": {
			world: newWorld,
			want: []string{
				"check-seed BeforeStart",
				"run-sandbox SandboxMissing",
				"start-seed NotCreated after run-sandbox,check-seed",
			},
		},
		"a pod that runs as wanted needs nothing": {world: running, want: []string{}},
		"a finished init container makes room for the regular ones, side by side": {
			world: func(d *podspec.Desired) *world {
				w := newWorld(d).sandbox("s0", 0, model.SandboxReady)
				w.container("s0", "seed", 0, model.Exited)
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
			world: running,
			edit:  func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "i:2" },
			want: []string{
				"check-app BeforeStart",
				"stop-app-0-of-s0 SpecChanged after check-app",
				"start-app SpecChanged after check-app,stop-app-0-of-s0 created after check-app once exited stop-app-0-of-s0",
			},
		},
		"a changed hostname stops nothing of a pod that runs once": {
			world: running,
			edit: func(d *podspec.Desired) {
				d.Pod.Spec.Hostname, d.Pod.Spec.RestartPolicy = "other", v1.RestartPolicyNever
			},
			want: []string{
				"hold  SandboxConfigChanged the pod's sandbox settings changed, and restartPolicy Never gives the pod no other; delete it to run it again",
			},
		},
		"a changed hostname replaces the sandbox after everything is proven": {
			world: running,
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
		"a sandbox in which nothing runs any more makes room whatever can be proven": {
			world: func(d *podspec.Desired) *world {
				w := newWorld(d).sandbox("s0", 0, model.SandboxNotReady)
				w.container("s0", "seed", 0, model.Exited)
				w.container("s0", "app", 0, model.Exited)
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
			world: func(d *podspec.Desired) *world {
				w := running(d)
				c := &w.Containers[1]
				c.State, c.ExitCode, c.FinishedAt = model.Exited, 1, noon.Add(-5*time.Second)
				w.Memory.Backoffs["app"] = model.Backoff{Duration: 10 * time.Second, LastUpdate: noon.Add(-time.Minute)}
				return w
			},
			want: []string{"hold app CrashLoopBackOff back-off 10s, exit code 1"},
		},
		"without a journal the delay is an estimate": {
			world: func(d *podspec.Desired) *world {
				w := running(d)
				w.Memory.Backoffs = nil
				c := &w.Containers[1]
				c.State, c.ExitCode, c.FinishedAt, c.RestartCount = model.Exited, 1, noon.Add(-5*time.Second), 4
				return w
			},
			want: []string{"hold app CrashLoopBackOff back-off 10s, exit code 1, at least (estimated from the runtime's records)"},
		},
		"a container that left the manifest is stopped and removed": {
			world: running,
			edit:  func(d *podspec.Desired) { d.Pod.Spec.Containers = d.Pod.Spec.Containers[:1] },
			want: []string{
				"stop-log-0-of-s0 RemovedFromSpec",
				"remove-log-0-of-s0 RemovedFromSpec after stop-log-0-of-s0",
			},
		},
		"nothing starts before all that stops has ended": {
			world: func(d *podspec.Desired) *world {
				w := running(d)
				w.container("s0", "old", 0, model.Running)
				w.Containers[2].State, w.Containers[2].ExitCode, w.Containers[2].FinishedAt = model.Exited, 1, noon.Add(-time.Hour)
				return w
			},
			edit: func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "i:2" },
			want: []string{
				"check-app BeforeStart",
				"check-log BeforeStart",
				"stop-app-0-of-s0 SpecChanged after check-app",
				"stop-old-0-of-s0 RemovedFromSpec",
				"remove-old-0-of-s0 RemovedFromSpec after stop-old-0-of-s0",
				"start-app SpecChanged after check-app,stop-app-0-of-s0,stop-old-0-of-s0 created after check-app once exited stop-app-0-of-s0,stop-old-0-of-s0",
				"start-log Exited after check-log,stop-app-0-of-s0,stop-old-0-of-s0 once exited stop-app-0-of-s0,stop-old-0-of-s0",
			},
		},
		"a record that was never started makes room for the next attempt": {
			world: func(d *podspec.Desired) *world {
				w := newWorld(d).sandbox("s0", 0, model.SandboxReady)
				w.container("s0", "seed", 0, model.Exited)
				w.container("s0", "app", 0, model.Created)
				w.container("s0", "log", 0, model.Running)
				return w
			},
			want: []string{
				"check-app BeforeStart",
				"remove-app-0-of-s0 NeverStarted",
				"start-app NeverStarted after check-app,remove-app-0-of-s0",
			},
		},
		"a replacement that was created before its pass was interrupted takes nothing's place": {
			world: func(d *podspec.Desired) *world {
				w := running(d)
				w.container("s0", "app", 3, model.Created)
				return w
			},
			want: []string{"remove-app-3-of-s0 NeverStarted"},
		},
		"a replacement that is proven lets the record before the last one go": {
			world: func(d *podspec.Desired) *world {
				w := newWorld(d).sandbox("s0", 0, model.SandboxReady)
				w.container("s0", "seed", 0, model.Exited)
				w.container("s0", "app", 0, model.Exited)
				w.container("s0", "app", 1, model.Running)
				w.container("s0", "log", 0, model.Running)
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
		"what a newer record has outlived is stopped": {
			world: func(d *podspec.Desired) *world {
				w := running(d)
				w.container("s0", "app", 1, model.Running)
				return w
			},
			want: []string{"stop-app-0-of-s0 Superseded"},
		},
		"what was to be replaced when a pass was interrupted still is": {
			world: func(d *podspec.Desired) *world {
				w := running(d)
				w.container("s0", "app", 1, model.Created)
				return w
			},
			edit: func(d *podspec.Desired) { d.Pod.Spec.Containers[0].Image = "i:2" },
			want: []string{
				"check-app BeforeStart",
				"stop-app-0-of-s0 SpecChanged after check-app",
				"remove-app-1-of-s0 NeverStarted",
				"start-app SpecChanged after check-app,stop-app-0-of-s0,remove-app-1-of-s0 created after check-app once exited stop-app-0-of-s0",
			},
		},
		"a network that is not ready holds a new pod": {
			world: func(d *podspec.Desired) *world {
				w := newWorld(d)
				ready := false
				w.Runtime.NetworkReady, w.Runtime.NetworkMessage = &ready, "no CNI configuration"
				return w
			},
			want: []string{"hold  NetworkNotReady no CNI configuration"},
		},
		"an absent image that may not be pulled stops nothing": {
			world: running,
			edit: func(d *podspec.Desired) {
				d.Pod.Spec.Containers[0].Image, d.Pod.Spec.Containers[0].ImagePullPolicy = "i:2", v1.PullNever
			},
			want: []string{"hold app ErrImageNeverPull image i:2 is absent and the pull policy is Never"},
		},
		"init containers are judged by the active sandbox alone": {
			world: func(d *podspec.Desired) *world {
				w := newWorld(d).sandbox("s0", 0, model.SandboxNotReady).sandbox("s1", 1, model.SandboxReady)
				w.container("s0", "seed", 0, model.Exited)
				w.container("s0", "app", 0, model.Created)
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
			d := load(t, webPod)
			w := c.world(d)
			if c.edit != nil {
				d = load(t, webPod)
				c.edit(d)
				w.d = d
				for _, ref := range podspec.Containers(d.Pod) {
					if _, known := w.Images[ref.Image]; !known && ref.ImagePullPolicy != v1.PullNever {
						w.Images[ref.Image] = model.Image{ID: "new"}
					} else if !known {
						w.Images[ref.Image] = model.Image{}
					}
				}
			}
			p := w.make()
			if diff := cmp.Diff(c.want, lines(p)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if again := w.make(); !sameJSON(t, p, again) {
				t.Error("the same input gave another plan")
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

// checkOrder: a step names only steps before it, and each id once.
func checkOrder(t *testing.T, p *Plan) {
	t.Helper()
	var seen []string
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, id := range s.After {
			if !slices.Contains(seen, id) {
				t.Errorf("%s comes after %s, which is not before it", s.ID, id)
			}
		}
		if slices.Contains(seen, s.ID) {
			t.Errorf("the id %s is given twice", s.ID)
		}
		seen = append(seen, s.ID)
	}
}

// TestNamesMakeNoTwoStepsOne: containers and volumes may be named after what podctl does.
func TestNamesMakeNoTwoStepsOne(t *testing.T) {
	d := load(t, `apiVersion: v1
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
	absent := newWorld(d)
	absent.Images = map[string]model.Image{"i:1": {}, "i:2": {}, "i:3": {}, "i:4": {}}
	resized := newWorld(d).sandbox("s0", 0, model.SandboxReady)
	resized.Memory.Actuated = &model.Actuated{Containers: map[string]v1.ResourceRequirements{}}
	resized.Volumes["x"] = model.Volume{Prepared: true, Digest: "a", Wanted: "b"}
	for _, name := range []string{"pod", "volume-data", "volume-x"} {
		resized.container("s0", name, 0, model.Running)
	}
	for _, w := range []*world{absent, resized} {
		if p := w.make(); len(p.Steps) < 5 {
			t.Errorf("there is little to do: %v", lines(p))
		} else {
			checkOrder(t, p)
		}
	}
}

func TestDeletionStopsInOrderAndRemovesAll(t *testing.T) {
	d := load(t, strings.Replace(webPod, "{name: seed, image: i:1}", "{name: seed, image: i:1, restartPolicy: Always}", 1))
	w := newWorld(d).sandbox("s0", 0, model.SandboxReady)
	w.container("s0", "seed", 0, model.Running)
	w.container("s0", "app", 0, model.Running)
	w.Memory.Applied = d
	p := Make(&Input{Pod: model.RefOf(d.Pod), Observed: w.Observed, Now: noon})
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
		if s := &p.Steps[i]; s.Kind == RemoveContainer && !slices.Equal(s.After, []string{"stop-app-0-of-s0", "stop-seed-0-of-s0"}) {
			t.Errorf("%s comes after %v: the ends of all containers, and no others", s.ID, s.After)
		}
	}
	for _, kind := range []Kind{RemoveContainer, RemoveSandbox, RemoveVolume, RemoveCgroup, ArchiveLogs} {
		if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == kind }) {
			t.Errorf("no step of kind %s", kind)
		}
	}
}

// TestSidecarsOutliveRegularContainersAlone: a debug container that does not end uses up no
// sidecar's grace period (kubelet: newTerminationOrdering).
func TestSidecarsOutliveRegularContainersAlone(t *testing.T) {
	d := load(t, strings.Replace(webPod, "{name: seed, image: i:1}", "{name: seed, image: i:1, restartPolicy: Always}", 1))
	d.Pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i:1"}}}
	w := newWorld(d).sandbox("s0", 0, model.SandboxReady)
	for _, name := range []string{"seed", "app", "debug"} {
		w.container("s0", name, 0, model.Running)
	}
	w.Memory.Applied = d
	for _, s := range Make(&Input{Pod: model.RefOf(d.Pod), Observed: w.Observed, Now: noon}).Steps {
		if s.Container == "seed" && s.Kind == StopContainer && !slices.Equal(s.StopAfter, []string{"stop-app-0-of-s0"}) {
			t.Errorf("the sidecar ends after %v", s.StopAfter)
		}
	}
}

// TestHooksRunInAPodThatEnds: a manifest may give no time to stop, but a pod that ends has
// a second.
func TestHooksRunInAPodThatEnds(t *testing.T) {
	d := load(t, strings.Replace(webPod, "{name: app, image: i:1}", "{name: app, image: i:1, lifecycle: {preStop: {exec: {command: [a]}}}}", 1))
	none := int64(0)
	d.Pod.Spec.TerminationGracePeriodSeconds = &none
	w := running(d)
	w.Memory.Applied = d
	for hook, opts := range map[string]Options{"exec": {}, "": {GracePeriod: &none}} {
		for _, s := range Make(&Input{Pod: model.RefOf(d.Pod), Observed: w.Observed, Now: noon, Options: opts}).Steps {
			if s.Container == "app" && s.Kind == StopContainer && s.PreStop != hook {
				t.Errorf("with %v: the hook %q, not %q", opts.GracePeriod, s.PreStop, hook)
			}
		}
	}
}

func TestPostStartHoldsBackWhatComesAfter(t *testing.T) {
	d := load(t, strings.Replace(webPod, "{name: app, image: i:1}", "{name: app, image: i:1, lifecycle: {postStart: {exec: {command: [a]}}}}", 1))
	w := newWorld(d).sandbox("s0", 0, model.SandboxReady)
	w.container("s0", "seed", 0, model.Exited)
	for _, line := range lines(w.make()) {
		if strings.HasPrefix(line, "start-log") && !strings.Contains(line, "start-app") {
			t.Errorf("%s: it must wait for the hook of app", line)
		}
	}
}

func TestFoldReachesTheThreshold(t *testing.T) {
	p := &v1.Probe{FailureThreshold: 2, SuccessThreshold: 1, PeriodSeconds: 10}
	r := model.InitialProbe(model.Liveness)
	r = r.Fold(model.Liveness, p, model.ProbeFailure, noon)
	if r.Result != model.ProbeSuccess || r.Run != 1 {
		t.Errorf("after one failure: %+v", r)
	}
	r = r.Fold(model.Liveness, p, model.ProbeUnknown, noon)
	if r.Run != 1 {
		t.Errorf("a run that could not be judged counted: %+v", r)
	}
	if r.Counts(p, noon.Add(9*time.Second)) || !r.Counts(p, noon.Add(10*time.Second)) {
		t.Error("a run counts once per period")
	}
	r = r.Fold(model.Liveness, p, model.ProbeFailure, noon.Add(10*time.Second))
	if r.Result != model.ProbeFailure || !r.OnHold {
		t.Errorf("after two failures: %+v", r)
	}
	if r.Stale(p, noon.Add(30*time.Second)) || !r.Stale(p, noon.Add(31*time.Second)) {
		t.Error("a failure is stale after failureThreshold periods")
	}
}

// TestSidecarThatExitedZeroIsNotWaiting: it starts again, and yet counts as terminated.
func TestSidecarThatExitedZeroIsNotWaiting(t *testing.T) {
	d := load(t, strings.Replace(webPod, "{name: seed, image: i:1}", "{name: seed, image: i:1, restartPolicy: Always}", 1))
	for code, waits := range map[int32]bool{0: false, 1: true} {
		w := running(d)
		w.Containers[0].FinishedAt, w.Containers[0].ExitCode = noon.Add(-5*time.Second), code
		w.Memory.Backoffs["seed"] = model.Backoff{Duration: 10 * time.Second, LastUpdate: noon.Add(-time.Minute)}
		status := Status(&Input{Pod: model.RefOf(d.Pod), Desired: d, Observed: w.Observed, Now: noon})
		if state := status.InitContainerStatuses[0].State; (state.Waiting != nil) != waits {
			t.Errorf("exited %d: %+v", code, state)
		}
	}
}

// TestNoTimeIsTooLong: a manifest may ask for more seconds than a duration holds.
func TestNoTimeIsTooLong(t *testing.T) {
	d := load(t, webPod)
	forever := int64(1) << 60
	d.Pod.Spec.TerminationGracePeriodSeconds = &forever
	w := running(d)
	w.Memory.Applied = d
	for _, s := range Make(&Input{Pod: model.RefOf(d.Pod), Observed: w.Observed, Now: noon}).Steps {
		if s.Kind == StopContainer && (model.Seconds(*s.GracePeriodSeconds) <= 0 || time.Duration(*s.GracePeriodSeconds)*time.Second <= 0) {
			t.Errorf("%s is given %d seconds", s.ID, *s.GracePeriodSeconds)
		}
	}
	if model.Seconds(forever) <= 0 {
		t.Error("time runs backwards")
	}
}

// TestStaleFailureIsAskedAgain: what nobody acted on in time is confirmed by one failure,
// or taken back by one success; a fresh one stands.
func TestStaleFailureIsAskedAgain(t *testing.T) {
	p := &v1.Probe{FailureThreshold: 3, SuccessThreshold: 1, PeriodSeconds: 10}
	for _, kind := range []model.ProbeType{model.Liveness, model.Startup} {
		failed := model.InitialProbe(kind)
		for range 3 {
			failed = failed.Fold(kind, p, model.ProbeFailure, noon)
		}
		if soon := failed.Reopened(p, noon.Add(time.Second)); soon != failed {
			t.Errorf("%s: a fresh failure is open again: %+v", kind, soon)
		}
		late := noon.Add(time.Minute)
		for verdict, onHold := range map[model.ProbeResult]bool{model.ProbeFailure: true, model.ProbeSuccess: kind == model.Startup} {
			if r := failed.Reopened(p, late).Fold(kind, p, verdict, late); r.Result != verdict || r.OnHold != onHold || r.Stale(p, late) {
				t.Errorf("%s: after one more %s it is %+v", kind, verdict, r)
			}
		}
	}
}

func TestBackoffDoublesAndBeginsAnew(t *testing.T) {
	var b model.Backoff
	at := noon
	var delays []time.Duration
	for range 7 {
		if until := b.Until(at); !until.IsZero() {
			delays = append(delays, until.Sub(at))
			at = until
		}
		b = b.Advance(at, at)
		at = at.Add(time.Second)
	}
	want := []time.Duration{10, 20, 40, 80, 160, 300}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if until := b.Until(b.LastUpdate.Add(601 * time.Second)); !until.IsZero() {
		t.Errorf("a run of more than ten minutes did not end the delay: %s", until)
	}
}

func TestChangesNameTheFields(t *testing.T) {
	before := map[string]any{
		"image": "a:1", "args": []any{"x"},
		"env": []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "S", "value": digest.SecretPrefix + "k:aa"}},
	}
	after := map[string]any{
		"image": "a:2", "args": []any{"x", "y"},
		"env": []any{map[string]any{"name": "B", "value": "2"}, map[string]any{"name": "S", "value": digest.SecretPrefix + "k:bb"}},
	}
	var got []string
	for _, c := range compareTrees(before, after).changes {
		got = append(got, c.String())
	}
	want := []string{`args: ["x"] -> ["x","y"]`, "env[A]: - 1", "env[B]: + 2", "env[S].value: (secret changed)", "image: a:1 -> a:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
