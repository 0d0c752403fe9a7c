package executor

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// lab is an executor with an in-memory runtime and an observer that supplies its plans.
type lab struct {
	t        *testing.T
	server   *runtimetest.Server
	clock    *runtimetest.Clock
	cgroups  *runtimetest.Cgroups
	client   *cri.Client
	layout   state.Layout
	observer *observe.Observer
	executor *Executor
	// kubelet is the result of the search for a kubelet.
	kubelet error

	mu     sync.Mutex
	events []Event
}

func newLab(t *testing.T, names ...string) *lab {
	t.Helper()
	server, clock, endpoint := runtimetest.Start(t, names...)
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l := &lab{
		t: t, server: server, clock: clock, cgroups: runtimetest.NewCgroups(server), client: client,
		layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir(), ContainerLogRoot: t.TempDir()},
	}
	w := observe.World{Client: client, Layout: l.layout, Cgroups: l.cgroups, Now: clock.Now}
	host := observe.NewHost(client, l.layout, observe.Sources{
		Machine: func() criconfig.Node { return criconfig.Node{Name: "node"} }, Kubelet: func() error { return l.kubelet },
	})
	digests := observe.NewDigests(l.layout)
	if err := digests.Keep(); err != nil {
		t.Fatal(err)
	}
	l.observer = observe.New(w, host, digests)
	l.executor = New(w, host, gc.New(w, host, images.NewStore(client, l.layout)))
	return l
}

// planned is a plan with its input.
type planned struct {
	*lab
	in       *plan.Input
	plan     *plan.Plan
	snapshot *snapshot.Pod
}

// plan observes a pod and makes a plan for it; an empty text deletes the pod.
func (l *lab) plan(ref model.PodRef, text string) *planned {
	l.t.Helper()
	var desired *podspec.Desired
	if text != "" {
		desired = loadPod(l.t, text)
		ref = model.RefOf(desired.Pod)
	}
	in, s, err := l.observer.Input(l.t.Context(), ref, desired, plan.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	return &planned{l, in, plan.Make(in), s}
}

// run executes the plan. The lab keeps the events.
func (p *planned) run(opts Options) (*Outcome, error) {
	opts.Report = p.note
	return p.executor.Run(p.t.Context(), p.in, p.plan, p.snapshot, opts)
}

// execution returns an execution of the plan without running it, to test its parts.
func (p *planned) execution(opts Options) *execution {
	opts.Report = p.note
	return p.executor.newExecution(p.in, p.plan, p.snapshot, opts)
}

// apply makes passes over a manifest until there is nothing to do.
func (l *lab) apply(text string) *planned {
	l.t.Helper()
	for range 10 {
		p := l.plan(model.PodRef{}, text)
		if len(p.plan.Steps) == 0 {
			return p
		}
		outcome, err := p.run(Options{})
		if err != nil || outcome.Err() != nil {
			l.t.Fatal(err, outcome.Err())
		}
	}
	l.t.Fatal("the plan never becomes complete")
	return nil
}

func (l *lab) note(ev Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ev)
}

// warnings returns the texts of the reported warnings.
func (l *lab) warnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var texts []string
	for _, ev := range l.events {
		if ev.Kind == Warning {
			texts = append(texts, ev.Detail)
		}
	}
	return texts
}

// checkpoint returns the checkpoint of a pod.
func (l *lab) checkpoint(ref model.PodRef) *state.Checkpoint {
	l.t.Helper()
	j, err := l.layout.Pod(ref.UID).Checkpoint().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	return j
}

// applyAPI makes one pass over a pod of the API server.
func (l *lab) applyAPI(text string) *planned {
	l.t.Helper()
	desired := podspectest.FromAPI(l.t, text)
	in, s, err := l.observer.Input(l.t.Context(), model.RefOf(desired.Pod), desired, plan.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	p := &planned{l, in, plan.Make(in), s}
	if _, err = p.run(Options{}); err != nil {
		l.t.Fatal(err)
	}
	return p
}

// history returns the events of a pod as "Reason container: message".
func (l *lab) history(ref model.PodRef) []string {
	l.t.Helper()
	h, err := l.layout.Pod(ref.UID).History().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	return eventTexts(h.Events)
}

func eventTexts(events []state.PodEvent) []string {
	texts := make([]string, 0, len(events))
	for _, e := range events {
		texts = append(texts, strings.TrimSpace(string(e.Type)+" "+e.Reason+" "+e.Container)+": "+e.Message)
	}
	return texts
}

// step returns the plan's step of a kind for a container; an empty name matches any container.
func (p *planned) step(kind plan.Kind, container string) *plan.Step {
	p.t.Helper()
	i := slices.IndexFunc(p.plan.Steps, func(s plan.Step) bool {
		return s.Kind == kind && (container == "" || s.Container == container)
	})
	if i < 0 {
		p.t.Fatalf("the plan has no %s of %q: %+v", kind, container, p.plan.Steps)
	}
	return &p.plan.Steps[i]
}

// pod returns a manifest of a pod with a grace period of one second; spec is the rest of its spec.
func pod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  terminationGracePeriodSeconds: 1\n" + spec
}

// onePod has one container.
func onePod() string { return pod("  containers: [{name: a, image: 'i:1'}]\n") }

// count returns how many calls of the runtime begin with a word.
func (l *lab) count(call string) int {
	n := 0
	for _, c := range l.server.Calls() {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

// waits returns a step that begins after others have ended.
func waits(s plan.Step, on ...string) plan.Step {
	s.Needs = plan.After(on...)
	return s
}

// stopWaits returns a stop that waits for other stops between its hook and its signal.
func stopWaits(s plan.Step, on ...string) plan.Step {
	for _, id := range on {
		s.Needs = append(s.Needs, plan.Edge{Step: id, Phase: plan.Stop})
	}
	return s
}

// createsAfter returns a start that creates its container after others have ended.
func createsAfter(s plan.Step, on ...string) plan.Step {
	for _, id := range on {
		s.Needs = append(s.Needs, plan.Edge{Step: id, Phase: plan.Create})
	}
	return s
}

// waitsForExit returns a step that begins after the processes of the stopped containers have ended.
func waitsForExit(s plan.Step, on ...string) plan.Step {
	for _, id := range on {
		s.Needs = append(s.Needs, plan.Edge{Step: id, Until: plan.Exited})
	}
	return s
}
