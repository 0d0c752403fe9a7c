package syncpod

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// lab is a Syncer with an in-memory runtime.
type lab struct {
	*Syncer
	t      *testing.T
	server *runtimetest.Server
	clock  *runtimetest.Clock
	layout state.Layout
	groups *runtimetest.Cgroups
}

func newLab(t *testing.T, names ...string) *lab {
	t.Helper()
	return newLabOn(t, criconfig.Node{Name: "node"}, names...)
}

// newLabOn returns a lab on a machine.
func newLabOn(t *testing.T, node criconfig.Node, names ...string) *lab {
	t.Helper()
	server, clock, endpoint := runtimetest.Start(t, names...)
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	// The cluster has no Services.
	if err = state.ClusterServices(layout).Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	groups := runtimetest.NewCgroups(server)
	w := observe.World{Client: client, Layout: layout, Cgroups: groups, Now: clock.Now}
	host := observe.NewHost(client, layout, observe.Sources{
		Machine: func() criconfig.Node { return node }, Kubelet: func() error { return nil },
	})
	digests := observe.NewDigests(layout)
	observer := observe.New(w, host, digests)
	x := executor.New(w, host, gc.New(w, host, images.NewStore(client, layout)))
	locker := &state.Locker{Layout: layout, Waiting: func(string) {}}
	return &lab{
		Syncer: New(locker, digests, observer, x), t: t, server: server, clock: clock, layout: layout, groups: groups,
	}
}

func loadPod(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}

const web = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n" +
	"spec:\n  terminationGracePeriodSeconds: 1\n  containers: [{name: a, image: 'i:1'}]\n"

// apply makes a successful pass.
func (l *lab) apply(text string) *executor.Outcome {
	l.t.Helper()
	outcome, err := l.Apply(l.t.Context(), loadPod(l.t, text), executor.Options{})
	if err != nil || outcome.Err() != nil {
		l.t.Fatal(err, outcome.Err())
	}
	return outcome
}

// TestGuard checks that it is called before the network of a pod with hostPorts is set up, and not otherwise.
func TestGuard(t *testing.T) {
	l := newLab(t, "i:1")
	calls := 0
	l.Guard = func() {
		made := slices.DeleteFunc(l.server.Calls(), func(call string) bool { return !strings.Contains(call, "RunPodSandbox") })
		if len(made) != 1 {
			t.Errorf("after %v", made)
		}
		calls++
	}
	l.apply(web)
	ports := strings.Replace(strings.Replace(web, "name: web", "name: ports", 1),
		"image: 'i:1'", "image: 'i:1', ports: [{containerPort: 80, hostPort: 8080}]", 1)
	l.apply(ports)
	l.apply(ports)
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// taken makes the creation of containers fail because their names are in use.
func (l *lab) taken(times int) {
	l.server.Fail(runtimetest.Fault{
		Method: "CreateContainer",
		Times:  times,
		Err:    status.Error(codes.Unknown, `name "a" is reserved for "x"`),
	})
}

// TestSurprisesMakeAnotherPlan checks that a pass continues with a new plan that knows the names in use, at most three
// times. A saved plan is executed unchanged or not at all.
func TestSurprisesMakeAnotherPlan(t *testing.T) {
	for times, fails := range map[int]bool{1: false, maxReplans: false, maxReplans + 1: true} {
		l := newLab(t, "i:1")
		l.taken(times)
		plans, attempts := 0, []uint32{}
		outcome, err := l.Apply(t.Context(), loadPod(t, web), executor.Options{Planned: func(p *plan.Plan) {
			plans++
			i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.StartContainer })
			attempts = append(attempts, p.Steps[i].Attempt)
		}})
		if changed := (*executor.StateChangedError)(nil); errors.As(err, &changed) != fails || (err != nil && !fails) {
			t.Errorf("%d state changes: %v", times, err)
		}
		if plans != min(times, maxReplans)+1 || !slices.IsSorted(attempts) || len(slices.Compact(attempts)) != plans {
			t.Errorf("%d state changes: %d plans, with the attempts %v", times, plans, attempts)
		}
		if !fails && outcome.Err() != nil {
			t.Errorf("%d state changes: %v", times, outcome.Err())
		}
	}
	l := newLab(t, "i:1")
	d := loadPod(t, web)
	saved, err := l.Plan(t.Context(), d, plan.Options{KeepBasis: true})
	if err != nil {
		t.Fatal(err)
	}
	l.taken(1)
	plans := 0
	_, err = l.Apply(t.Context(), d, executor.Options{Saved: saved, Planned: func(*plan.Plan) { plans++ }})
	if changed := (*executor.StateChangedError)(nil); !errors.As(err, &changed) || plans != 1 {
		t.Errorf("a saved plan: %d plans, %v", plans, err)
	}
}

// TestPlansChangeNothing covers an apply and a deletion.
func TestPlansChangeNothing(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, web)
	if p, err := l.Plan(t.Context(), d, plan.Options{}); err != nil || len(p.Steps) == 0 {
		t.Error(p, err)
	}
	if p, err := l.PlanDeletion(t.Context(), model.RefOf(d.Pod), plan.Options{}); err != nil || len(p.Steps) > 0 {
		t.Error(p, err)
	}
	l.apply(web)
	calls := len(l.server.Calls())
	if p, err := l.PlanDeletion(t.Context(), model.RefOf(d.Pod), plan.Options{}); err != nil || len(p.Steps) == 0 {
		t.Error(p, err)
	}
	if j, err := l.layout.Pod(d.Pod.UID).Checkpoint().Read(); err != nil || j.Deletion != nil || len(l.server.Calls()) != calls {
		t.Errorf("deletion %v, calls %v, %v", j.Deletion, l.server.Calls(), err)
	}
	l.server.Fail(runtimetest.Fault{Method: "ListPodSandbox", Times: 2, Err: errors.New("injected failure")})
	_, planErr := l.Plan(t.Context(), d, plan.Options{})
	_, deletionErr := l.PlanDeletion(t.Context(), model.RefOf(d.Pod), plan.Options{})
	if planErr == nil || deletionErr == nil {
		t.Errorf("after a failed observation: %v, %v", planErr, deletionErr)
	}
}

// TestCopiesThatAreSuperseded checks that podctl's own copy of a manifest neither undoes another one nor recreates a
// deleted pod. A manifest of the user does.
func TestCopiesThatAreSuperseded(t *testing.T) {
	ref := model.PodRef{Namespace: "default", Name: "web"}
	copyOf, other := loadPod(t, web), loadPod(t, strings.Replace(web, "i:1", "i:2", 1))
	copyOf.Stored = true
	took := func(value string) *podspec.Desired {
		text := strings.Replace(web, "image: 'i:1'", "image: 'i:1', envFrom: [{configMapRef: {name: c}}]", 1)
		d, err := loadPod(t, text).WithShared(func(string, podspec.ObjectName) (*podspec.Object, error) {
			return &podspec.Object{
				ConfigMap: &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"A": value}},
			}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Stored = true
		return d
	}
	for name, c := range map[string]struct {
		desired *podspec.Desired
		j       state.Checkpoint
		want    string
	}{
		"a user's":          {other, state.Checkpoint{Memory: model.Memory{Applied: loadPod(t, web)}}, ""},
		"nothing is wanted": {nil, state.Checkpoint{}, ""},
		"the same":          {copyOf, state.Checkpoint{Memory: model.Memory{Applied: loadPod(t, web)}}, ""},
		"stored otherwise":  {took("1"), state.Checkpoint{Memory: model.Memory{Applied: took("2")}}, ""},
		"changed": {
			copyOf,
			state.Checkpoint{Memory: model.Memory{Applied: other}},
			"pod default/web was changed by another podctl meanwhile, and that change is kept",
		},
		"deleted": {copyOf, state.Checkpoint{}, "pod default/web was deleted by another podctl meanwhile, and stays deleted"},
		"deleted, unfinished": {
			copyOf,
			state.Checkpoint{Memory: model.Memory{Applied: loadPod(t, web), Deletion: &model.Deletion{}}},
			"pod default/web: its deletion is not finished: " +
				"podctl delete default/web finishes it, podctl apply of its manifest cancels it",
		},
	} {
		err := Superseded(ref, c.desired, &c.j)
		if (err == nil) != (c.want == "") || (err != nil && err.Error() != c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestOnlyOnePod checks that a deletion limited to one manifest's pod does not delete another one.
func TestOnlyOnePod(t *testing.T) {
	l := newLab(t, "i:1", "i:2")
	l.apply(web)
	only := loadPod(t, web)
	only.Stored = true
	l.apply(strings.Replace(web, "i:1", "i:2", 1))
	superseded := (*SupersededError)(nil)
	if _, err := l.Delete(t.Context(), model.RefOf(only.Pod), executor.Options{Only: only}); !errors.As(err, &superseded) {
		t.Errorf("another manifest: %v", err)
	}
	if slices.ContainsFunc(l.server.Calls(), func(c string) bool { return strings.HasPrefix(c, "RemovePodSandbox") }) {
		t.Error("it was deleted")
	}
	if outcome, err := l.Delete(t.Context(), model.RefOf(only.Pod), executor.Options{}); err != nil || outcome.Err() != nil {
		t.Error(err, outcome.Err())
	}
}

// TestPassesHoldTheLock checks that no pass is made while another process holds the pod's lock, and that the lock is
// free after each pass, also after a failure.
func TestPassesHoldTheLock(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, web)
	ref := model.RefOf(d.Pod)
	l.locker.Timeout = 20 * time.Millisecond
	lock, err := l.layout.Pod(ref.UID).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	locked := (*filelock.LockedError)(nil)
	_, applyErr := l.Apply(t.Context(), d, executor.Options{})
	_, deleteErr := l.Delete(t.Context(), ref, executor.Options{})
	_, debugErr := l.Debug(t.Context(), d, debugger("i:1"), executor.Options{})
	for what, err := range map[string]error{"apply": applyErr, "delete": deleteErr, "debug": debugErr} {
		if !errors.As(err, &locked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(l.server.Calls()) > 0 {
		t.Errorf("calls %v", l.server.Calls())
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	l.server.Fail(runtimetest.Fault{Method: "ListPodSandbox", Times: 1, Err: errors.New("injected failure")})
	if _, err := l.Apply(t.Context(), d, executor.Options{}); err == nil || errors.As(err, &locked) {
		t.Errorf("after a failed observation: %v", err)
	}
	l.apply(web)
}

// debugger returns a debug container.
func debugger(image string) *v1.EphemeralContainer {
	return &v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{
		Name:            "debugger",
		Image:           image,
		ImagePullPolicy: v1.PullIfNotPresent,
	}}
}

// TestDebugContainers checks that one joins a running pod with a new name, and that the manifest does not change.
func TestDebugContainers(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, web)
	if _, err := l.Debug(t.Context(), d, debugger("i:1"), executor.Options{}); err == nil ||
		!strings.Contains(err.Error(), "is not running") {
		t.Errorf("of a pod that does not run: %v", err)
	}
	l.apply(web)
	taken := debugger("i:1")
	taken.Name = "a"
	if _, err := l.Debug(t.Context(), d, taken, executor.Options{}); err == nil ||
		!strings.Contains(err.Error(), "has a container a already") {
		t.Errorf("under a name that is taken: %v", err)
	}
	outcome, err := l.Debug(t.Context(), d, debugger("i:1"), executor.Options{})
	if err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	made := l.server.Created().Containers
	if last := made[len(made)-1]; last.GetMetadata().GetName() != "debugger" ||
		!strings.Contains(last.GetAnnotations()[criconfig.AnnotationDebug], "debugger") {
		t.Errorf("made %v", last)
	}
	if j, err := l.layout.Pod(d.Pod.UID).Checkpoint().Read(); err != nil || !j.Applied.SameAs(d) || j.Generation != 1 {
		t.Errorf("recorded: generation %d, %v", j.Generation, err)
	}
	if p, err := l.Plan(t.Context(), d, plan.Options{}); err != nil || len(p.Steps) > 0 {
		t.Errorf("a pass after it does %v, %v", p.Steps, err)
	}
	held := debugger("i:3")
	held.Name, held.ImagePullPolicy = "held", v1.PullNever
	if _, err := l.Debug(t.Context(), d, held, executor.Options{}); err == nil ||
		!strings.Contains(err.Error(), "the debug container cannot start") {
		t.Errorf("with an image that is not there: %v", err)
	}
}

// TestPortsAreReserved checks that two pods that need one port of the node cannot both find it free: the first pod
// reserves it until that is recorded.
func TestPortsAreReserved(t *testing.T) {
	l := newLab(t, "i:1")
	text := strings.Replace(web, "image: 'i:1'", "image: 'i:1', ports: [{containerPort: 80, hostPort: 18099}]", 1)
	l.locker.Timeout = 20 * time.Millisecond
	reserved := func() bool {
		free, err := l.locker.ReservePorts(t.Context(), loadPod(t, text))
		if err == nil {
			free()
		}
		return err != nil
	}
	var planned, running bool
	l.server.Fail(runtimetest.Fault{Method: "RunPodSandbox", Times: 1, Only: func(request any) bool {
		_ = request.(*runtimeapi.RunPodSandboxRequest)
		running = reserved()
		return false
	}})
	if _, err := l.Apply(t.Context(), loadPod(t, text), executor.Options{Planned: func(*plan.Plan) { planned = reserved() }}); err != nil {
		t.Fatal(err)
	}
	if !planned || running || reserved() {
		t.Errorf("reserved while it is planned: %t, while the sandbox is created: %t, and after it: %t", planned, running, reserved())
	}
	other := strings.Replace(text, "name: web", "name: other", 1)
	p, err := l.Plan(t.Context(), loadPod(t, other), plan.Options{})
	if err != nil || len(p.Holds) != 1 || p.Holds[0].Reason != model.HostPortConflict {
		t.Errorf("another pod: %+v, %v", p.Holds, err)
	}
}

// TestAdoptedContainers checks that a container with an unreadable hash is kept, and that its adopted definition is
// recorded. The next change replaces it. Without a record of its resources the runtime's count.
func TestAdoptedContainers(t *testing.T) {
	limited := strings.Replace(web, "image: 'i:1'", "image: 'i:1', args: [x], resources: {limits: {memory: 64Mi}}", 1)
	l := newLab(t, "i:1")
	l.apply(limited)
	path := l.layout.Pod(loadPod(t, web).Pod.UID).Checkpoint().Path()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.server.Annotate("a", criconfig.AnnotationContainerHash, "1234")
	l.server.Annotate("a", criconfig.AnnotationContainerSpecHash, "")
	if outcome := l.apply(limited); len(outcome.Plan.Steps) > 0 || !outcome.Plan.Adopts {
		t.Errorf("adopting does %v", outcome.Plan.Steps)
	}
	if outcome := l.apply(limited); outcome.Plan.Records() || len(outcome.Plan.Notes) > 0 {
		t.Errorf("adopting again: %+v", outcome.Plan)
	}
	if outcome := l.apply(strings.Replace(limited, "[x]", "[z]", 1)); kinds(outcome.Plan) != "CheckContainer StopContainer StartContainer" {
		t.Errorf("an edit: %s", kinds(outcome.Plan))
	}
}

func kinds(p *plan.Plan) string {
	var words []string
	for i := range p.Steps {
		words = append(words, string(p.Steps[i].Kind))
	}
	return strings.Join(words, " ")
}

// TestAdoptedResources checks that the runtime's resources count if podctl has no record of them, also after a failed
// update.
func TestAdoptedResources(t *testing.T) {
	limited := strings.Replace(web, "image: 'i:1'", "image: 'i:1', resources: {limits: {memory: 64Mi}}", 1)
	grown := strings.Replace(limited, "64Mi", "128Mi", 1)
	for name, forget := range map[string]bool{"an edit after the adoption": false, "another manifest than what runs": true} {
		l := newLab(t, "i:1")
		l.apply(limited)
		if err := os.Remove(l.layout.Pod(loadPod(t, web).Pod.UID).Checkpoint().Path()); err != nil {
			t.Fatal(err)
		}
		if !forget {
			l.apply(limited)
		}
		l.server.Fail(runtimetest.Fault{Method: "UpdateContainerResources", Times: 1, Err: errors.New("injected failure")})
		for try := range 2 {
			outcome, err := l.Apply(t.Context(), loadPod(t, grown), executor.Options{})
			if err != nil || (outcome.Err() != nil) != (try == 0) || kinds(outcome.Plan) != "UpdatePod UpdateContainer" {
				t.Errorf("%s, try %d: %s, %v, %v", name, try, kinds(outcome.Plan), err, outcome.Err())
			}
		}
		if outcome := l.apply(grown); len(outcome.Plan.Steps) > 0 {
			t.Errorf("%s, after the resize: %s", name, kinds(outcome.Plan))
		}
	}
}
