package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// lab is an in-memory runtime with podctl's engine.
type lab struct {
	t      *testing.T
	server *runtimetest.Server
	clock  *runtimetest.Clock
	engine *Engine
	layout state.Layout
	// settings are the engine's settings.
	settings Settings
}

// world returns the environment of the engine.
func (l *lab) world() observe.World {
	return observe.World{Client: l.engine.Client, Layout: l.layout, Cgroups: l.settings.Cgroups, Now: l.clock.Now}
}

// restart creates a new engine on a connection with other settings.
func (l *lab) restart(client *cri.Client, change func(*Settings)) *Engine {
	change(&l.settings)
	l.layout = l.settings.Layout
	l.engine = NewEngine(client, l.settings)
	return l.engine
}

func newLab(t *testing.T, images ...string) *lab {
	t.Helper()
	server, clock, endpoint := runtimetest.Start(t, images...)
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	dir := filepath.Dir(strings.TrimPrefix(endpoint, "unix://"))
	layout := state.Layout{Root: filepath.Join(dir, "state"), LogRoot: filepath.Join(dir, "logs")}
	settings := Settings{Layout: layout, Now: clock.Now, Cgroups: runtimetest.NewCgroups(server)}
	return &lab{t: t, server: server, clock: clock, engine: NewEngine(client, settings), layout: layout, settings: settings}
}

// manifest loads a pod.
func (l *lab) manifest(pod *v1.Pod) *podspec.Desired {
	l.t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		l.t.Fatal(err)
	}
	return podspectest.Desired(l.t, string(text))
}

// pass runs the probes that are due and makes one pass.
func (l *lab) pass(d *podspec.Desired) (*plan.Plan, error) { return l.passIn(l.t.Context(), d) }

func (l *lab) passIn(ctx context.Context, d *podspec.Desired) (*plan.Plan, error) {
	if _, err := l.engine.Prober.Probe(ctx, d, probe.Options{Due: true}); err != nil {
		return nil, err
	}
	outcome, err := l.engine.Pods.Apply(ctx, d, executor.Options{})
	if err != nil {
		return nil, err
	}
	return outcome.Plan, outcome.Err()
}

// trial is one random pod with random events.
type trial struct {
	*lab
	r   *rand.Rand
	pod *v1.Pod
	log []string
}

func (x *trial) note(format string, args ...any) { x.log = append(x.log, fmt.Sprintf(format, args...)) }

func (x *trial) chance(percent int) bool { return x.r.IntN(100) < percent }

func pick[E any](r *rand.Rand, of ...E) E { return of[r.IntN(len(of))] }

func randomPod(r *rand.Rand) *v1.Pod {
	pod := &v1.Pod{}
	pod.APIVersion, pod.Kind, pod.Name = "v1", "Pod", "web"
	pod.Spec.RestartPolicy = pick(r, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)
	for i := range r.IntN(4) {
		c := v1.Container{Name: fmt.Sprintf("init-%d", i), Image: "i:1"}
		if r.IntN(3) == 0 {
			always := v1.ContainerRestartPolicyAlways
			c.Name, c.RestartPolicy = fmt.Sprintf("sidecar-%d", i), &always
			if r.IntN(2) == 0 {
				c.StartupProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"ok"}}}}
			}
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i := range 1 + r.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, randomContainer(r, i))
	}
	if r.IntN(3) == 0 {
		pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
	}
	return pod
}

func randomContainer(r *rand.Rand, i int) v1.Container {
	c := v1.Container{Name: fmt.Sprintf("app-%d", i), Image: "i:1"}
	if r.IntN(4) > 0 {
		return c
	}
	policy := pick(r, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)
	c.RestartPolicy = &policy
	if r.IntN(2) == 0 {
		c.RestartPolicyRules = []v1.ContainerRestartRule{{
			Action:    pick(r, v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers),
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
	}
	return c
}

// behave makes all containers behave well from now on: init containers succeed, all others continue to run or, if they
// may end, succeed.
func (x *trial) behave() {
	for _, c := range x.pod.Spec.InitContainers {
		x.server.Behave(c.Name)
		if c.RestartPolicy == nil {
			x.server.Behave(c.Name, runs(20, runtimetest.Behaviour{After: time.Second})...)
		}
	}
	for i := range x.pod.Spec.Containers {
		c := &x.pod.Spec.Containers[i]
		x.server.Behave(c.Name)
		if !x.restartsForEver(c) && x.chance(50) {
			x.server.Behave(c.Name, runs(20, runtimetest.Behaviour{After: 2 * time.Second})...)
		}
	}
}

func (x *trial) restartsForEver(c *v1.Container) bool {
	if c.RestartPolicy != nil {
		return *c.RestartPolicy == v1.ContainerRestartPolicyAlways
	}
	return x.pod.Spec.RestartPolicy == v1.RestartPolicyAlways
}

func runs(n int, b runtimetest.Behaviour) []runtimetest.Behaviour {
	return slices.Repeat([]runtimetest.Behaviour{b}, n)
}

// disturb causes a random event.
func (x *trial) disturb() {
	names := []string{}
	for _, ref := range podspec.Containers(x.pod) {
		names = append(names, ref.Name)
	}
	name := pick(x.r, names...)
	switch x.r.IntN(10) {
	case 0, 1:
		code := pick(x.r, int32(0), 1, 42, 137)
		x.note("%s exits %d", name, code)
		x.server.Exit(name, code)
	case 2:
		x.note("%s is removed", name)
		x.server.Lose(name)
	case 3:
		x.note("%s becomes unknown", name)
		x.server.Forget(name)
	case 4:
		x.note("reboot")
		x.server.Reboot()
	case 5:
		x.edit()
	case 6:
		x.note("the checkpoint is lost")
		_ = os.Remove(x.layout.Pod(x.uid()).Checkpoint().Path())
	case 7:
		f := runtimetest.Fault{
			Method: pick(x.r, "RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ListContainers"),
			Times:  1, Err: status.Error(codes.Unknown, "on demand"), Afterwards: x.chance(50),
		}
		x.note("%s fails, afterwards: %v", f.Method, f.Afterwards)
		x.server.Fail(f)
	default:
		d := pick(x.r, time.Second, 10*time.Second, 5*time.Minute)
		x.note("%s pass", d)
		x.clock.Advance(d)
	}
}

func (x *trial) uid() types.UID { return podspec.UID("default", x.pod.Name) }

// edit changes the manifest.
func (x *trial) edit() {
	spec := &x.pod.Spec
	c := &spec.Containers[x.r.IntN(len(spec.Containers))]
	switch x.r.IntN(8) {
	case 0:
		c.Image = pick(x.r, "i:1", "i:2")
		x.note("%s has image %s", c.Name, c.Image)
	case 1:
		spec.Hostname = pick(x.r, "a", "b")
		x.note("hostname %s", spec.Hostname)
	case 2:
		if last := len(spec.Containers) - 1; last > 0 {
			x.note("%s leaves the manifest", spec.Containers[last].Name)
			spec.Containers = spec.Containers[:last]
		}
	case 3:
		added := randomContainer(x.r, len(spec.Containers))
		x.note("%s joins the manifest", added.Name)
		spec.Containers = append(spec.Containers, added)
	case 4:
		spec.HostNetwork = !spec.HostNetwork
		x.note("hostNetwork %v", spec.HostNetwork)
	case 5:
		cpu := resource.MustParse(pick(x.r, "100m", "200m", "1"))
		c.Resources.Limits = v1.ResourceList{v1.ResourceCPU: cpu}
		x.note("%s may use %s cpu", c.Name, cpu.String())
	case 6:
		if len(spec.InitContainers) > 0 {
			init := &spec.InitContainers[x.r.IntN(len(spec.InitContainers))]
			init.Image = pick(x.r, "i:1", "i:2")
			x.note("%s has image %s", init.Name, init.Image)
		}
	case 7:
		if len(spec.InitContainers) > 0 {
			x.note("%s leaves the manifest", spec.InitContainers[0].Name)
			spec.InitContainers = spec.InitContainers[1:]
		}
	}
}

// check makes the current plan and checks the invariants of plans.
func (x *trial) check(d *podspec.Desired) {
	x.t.Helper()
	s, err := x.engine.Observer.Observe(x.t.Context(), model.RefOf(d.Pod), d)
	if err != nil {
		if status.Code(errors.Unwrap(err)) == codes.Unknown || strings.Contains(err.Error(), "on demand") {
			return
		}
		x.t.Fatalf("%v\n%s", err, strings.Join(x.log, "\n"))
	}
	in := s.Input(model.RefOf(d.Pod), d, plan.Options{})
	p := plan.Make(in)
	if again := plan.Make(x.shuffled(in)); !sameDocument(x.t, p, again) {
		x.t.Errorf("the same input gave another plan\n%s", strings.Join(x.log, "\n"))
	}
	for _, fault := range planFaults(p, in) {
		x.t.Errorf("%s\n%s", fault, strings.Join(x.log, "\n"))
	}
}

func (x *trial) shuffled(in *plan.Input) *plan.Input {
	other := *in
	other.Observed.Containers, other.Observed.Sandboxes = slices.Clone(in.Observed.Containers), slices.Clone(in.Observed.Sandboxes)
	c, s := other.Observed.Containers, other.Observed.Sandboxes
	x.r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
	x.r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return &other
}

func sameDocument(t *testing.T, a, b *plan.Plan) bool {
	t.Helper()
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// planFaults lists violations of the invariants of plans.
func planFaults(p *plan.Plan, in *plan.Input) []string {
	var faults []string
	steps := map[string]*plan.Step{}
	before := map[string]map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if steps[s.ID] != nil {
			faults = append(faults, "two steps are called "+s.ID)
		}
		steps[s.ID], before[s.ID] = s, map[string]bool{}
		for _, e := range s.Needs.Of(plan.Begin) {
			id := e.Step
			if steps[id] == nil {
				faults = append(faults, fmt.Sprintf("%s comes after %s, which is not before it", s.ID, id))
				continue
			}
			before[s.ID][id] = true
			for further := range before[id] {
				before[s.ID][further] = true
			}
		}
		for _, e := range s.Needs {
			if e.Until == plan.Exited && (!before[s.ID][e.Step] || steps[e.Step].Kind != plan.StopContainer) {
				faults = append(faults, fmt.Sprintf("%s waits for the exit of %s, which is not stopped before it", s.ID, e.Step))
			}
		}
		faults = append(faults, stepFaults(p, s, steps, before[s.ID])...)
		if ranUnderNever(in, s) {
			faults = append(faults, s.ID+" starts a container again that has run, under Never")
		}
		if stopsForLater(p, s) {
			faults = append(faults, s.ID+" stops a container for an edit and does not start it again")
		}
	}
	return faults
}

// stepFaults checks that a start needs its sandbox, its check and the end of the container with its name. A container
// must be checked before it is stopped to start again.
func stepFaults(p *plan.Plan, s *plan.Step, steps map[string]*plan.Step, before map[string]bool) []string {
	var faults []string
	for id, other := range steps {
		needs := false
		switch {
		case s.Kind == plan.StartContainer && other.Kind == plan.RunSandbox:
			needs = true
		case s.Kind == plan.StartContainer && other.Container == s.Container:
			needs = other.Kind == plan.CheckContainer || other.Kind == plan.StopContainer
		case s.Kind == plan.CheckContainer && other.Kind == plan.PullImage:
			needs = other.Image == s.Image
		case s.Kind == plan.RunSandbox && (other.Kind == plan.StopSandbox || other.Kind == plan.StopContainer):
			needs = p.KillPod
		}
		if needs && !before[id] {
			faults = append(faults, fmt.Sprintf("%s does not wait for %s", s.ID, id))
		}
	}
	if s.Kind == plan.StartContainer && !before["check-"+s.Container] {
		faults = append(faults, s.ID+" is not proven")
	}
	return faults
}

// stopsForLater reports whether a step stops a container for an edit whose new run is held. A container that fails its
// probes is stopped anyway, as in a kubelet.
func stopsForLater(p *plan.Plan, s *plan.Step) bool {
	edits := []model.Reason{model.SandboxConfigChanged, model.NetworkModeChanged, model.SpecChanged, model.Resized, model.RestartRequested}
	return s.Kind == plan.StopContainer && slices.Contains(edits, s.Reason) &&
		slices.ContainsFunc(p.Holds, func(h plan.Hold) bool { return h.Container == s.Container })
}

// ranUnderNever reports whether a step starts a regular container that has ended with restartPolicy Never. It returns
// false if the manifest has changed, or if the user or podctl restarts the container.
func ranUnderNever(in *plan.Input, s *plan.Step) bool {
	ref, ok := podspec.FindContainer(in.Desired.Pod, s.Container)
	if !ok || s.Kind != plan.StartContainer || ref.Type != podspec.Regular || ref.RestartPolicy != nil ||
		in.Desired.Pod.Spec.RestartPolicy != v1.RestartPolicyNever || in.Observed.AwaitsRestart(s.Container) {
		return false
	}
	var newest *model.Container
	for i := range in.Observed.Containers {
		c := &in.Observed.Containers[i]
		if c.Name == s.Container && (newest == nil || c.CreatedAt.After(newest.CreatedAt)) {
			newest = c
		}
	}
	return newest != nil && newest.State == model.Exited && !newest.StartedAt.IsZero() &&
		newest.SpecHash == spechash.Container(in.Desired, ref.Container)
}

// settle makes passes until there is nothing to do, and advances the time if a pass only waits.
func (x *trial) settle() *plan.Plan {
	x.t.Helper()
	var p *plan.Plan
	for range 60 {
		d := x.manifest(x.pod)
		x.check(d)
		var err error
		if p, err = x.pass(d); err != nil && !strings.Contains(err.Error(), "on demand") {
			x.t.Fatalf("%v\n%s", err, strings.Join(x.log, "\n"))
		}
		switch {
		case err != nil:
		case p.Complete && len(p.Steps) == 0, overUnderNever(p):
			return p
		case len(p.Steps) == 0:
			x.clock.Advance(x.patience(p))
		}
	}
	x.t.Fatalf("not complete after 60 passes: waiting %v, holds %+v, steps %+v\n%s\n%s",
		p.WaitingFor, p.Holds, p.Steps, strings.Join(x.log, "\n"), strings.Join(lastOf(x.server.Calls(), 12), "\n"))
	return nil
}

// overUnderNever reports whether the pod has lost its sandbox and gets no new one.
func overUnderNever(p *plan.Plan) bool {
	return len(p.Steps) == 0 && len(p.Holds) == 1 &&
		p.Holds[0].Container == "" && strings.Contains(p.Holds[0].Message, "restartPolicy Never")
}

func lastOf(list []string, n int) []string { return list[max(0, len(list)-n):] }

// patience returns the time until something changes by itself.
func (x *trial) patience(p *plan.Plan) time.Duration {
	wait := time.Second
	if next, ok := x.server.NextExit(); ok {
		wait = next
	}
	for _, h := range p.Holds {
		if h.Until != nil {
			wait = max(wait, h.Until.Sub(x.clock.Now()))
		}
	}
	return wait
}

// TestRandomPodsBecomeComplete checks that after any events the passes end, one sandbox and one container of each name
// run, and nothing changes any more.
func TestRandomPodsBecomeComplete(t *testing.T) {
	trials := uint64(200)
	if testing.Short() {
		trials = 40
	}
	for seed := range trials {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			x := &trial{lab: newLab(t, "i:1", "i:2"), r: r, pod: randomPod(r)}
			x.note("policy %s", x.pod.Spec.RestartPolicy)
			x.behave()
			for range r.IntN(12) {
				x.disturb()
				d := x.manifest(x.pod)
				x.check(d)
				if _, err := x.pass(d); err != nil && !strings.Contains(err.Error(), "on demand") {
					t.Fatalf("%v\n%s", err, strings.Join(x.log, "\n"))
				}
				x.note("pass")
			}
			x.behave()
			x.settle()
			calls := len(x.server.Calls())
			p, err := x.pass(x.manifest(x.pod))
			if err != nil || len(p.Steps) > 0 || len(x.server.Calls()) != calls {
				t.Errorf("a complete pod is touched: %v %+v", err, p)
			}
			x.checkOnce()
		})
	}
}

// checkOnce checks that at most one sandbox is ready, and that no name runs twice.
func (x *trial) checkOnce() {
	x.t.Helper()
	d := x.manifest(x.pod)
	s, err := x.engine.Observer.Observe(x.t.Context(), model.RefOf(d.Pod), d)
	if err != nil {
		x.t.Fatal(err)
	}
	o := s.Observed(s.Pod, nil)
	ready, running := 0, map[string]int{}
	for i := range o.Sandboxes {
		if o.Sandboxes[i].State == model.SandboxReady {
			ready++
		}
	}
	for i := range o.Containers {
		if o.Containers[i].State == model.Running {
			running[o.Containers[i].Name]++
		}
	}
	for name, n := range running {
		if n > 1 {
			x.t.Errorf("%s runs %d times", name, n)
		}
	}
	if ready > 1 || (ready == 0 && len(running) > 0) {
		x.t.Errorf("%d sandboxes are ready", ready)
	}
}
