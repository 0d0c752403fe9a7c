package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/pleg"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
)

// Settings are what an agent is told.
type Settings struct {
	// Sources say which pods shall be there, in the order of their rank.
	Sources []sources.Source
	// Applied keeps the pods that were applied by hand too.
	Applied bool
	// Parallel is how many passes change something at the same time.
	Parallel int
	// Admission admits pods as a kubelet does; nil admits every pod.
	Admission *admission.Settings
	// AllowKubelet goes on beside a kubelet on the same runtime.
	AllowKubelet bool
	// Now is the clock, Log where decisions are written.
	Now func() time.Time
	Log *slog.Logger
	// Random gives numbers from 0 to below 1, which spread passes and probes over time; nil means the
	// usual ones.
	Random func() float64
	// Events are how often the runtime is asked; the zero value means the usual times.
	Events pleg.Times
	// StopPods stops all pods within this time when the agent ends; zero lets them run on.
	StopPods time.Duration
	// Started is called once the agent has begun to keep pods; it may be nil.
	Started func()
	// Listeners are notified of what the agent does, after its log, its metrics and its lists of pods.
	Listeners []Listener
	// Workloads are the stored workloads; nil for an agent that keeps none.
	Workloads Workloads
	// Ready is called once every source was read and every pod has had a pass; it may be nil.
	Ready func()
}

// World is what an agent works with.
type World struct {
	Passes  Passes
	Records Records
	Prober  Prober
	Client  *cri.Client
	// Exits calls told with the id of each container whose process ends, before the runtime's records show it; see
	// pleg.Generator. Nil for nobody who could tell.
	Exits  func(ctx context.Context, told func(id string)) error
	Lister Lister
	// Renew lets the facts of the machine and the runtime be asked for again.
	Renew func()
}

// Workloads are the workloads that an agent keeps.
type Workloads interface {
	// Look takes up the stored workloads as they are now.
	Look(ctx context.Context) error
	// States are those that are kept, for the status.
	States() []api.Workload
}

// Agent keeps pods until it is stopped. All that it decides is decided by one goroutine, its loop.
type Agent struct {
	*loopState
	*shownPods

	probes *probing
	admits *admitting
	evicts *evicting
	maker  *passMaker
	reader *recordReader
	pulls  *pulling
	paths  *pathWatch
	ending *ending
	// beside makes a pass beside the loop.
	beside func(p *podworkers.Pass, do func())
	// rereads let each source look now.
	rereads []func() reread
	pulse   pulse
}

// ErrHandover says, as the cause of the end of the context of Run, that another agent follows at once:
// pods run on in any case.
var ErrHandover = errors.New("another agent follows")

// New makes an agent.
func New(w World, s Settings) *Agent {
	if s.Random == nil {
		s.Random = rand.Float64
	}
	var a *Agent
	st := newLoopState(w, s, func() { a.resolved() })
	a = &Agent{
		loopState: st, shownPods: newShownPods(st, st.metrics.WatchDropped),
		probes: newProbing(st), admits: newAdmitting(st), evicts: &evicting{loopState: st, waiting: map[types.UID]chan error{}},
		reader: &recordReader{st}, pulls: &pulling{loopState: st, turns: map[types.UID][]chan struct{}{}}, ending: &ending{loopState: st},
		paths: &pathWatch{
			missing: map[types.UID][]string{}, watchers: map[types.UID]*fsnotify.Watcher{},
			wake: func(ctx context.Context, uid types.UID) { st.inbox.post(ctx, func() { st.wakePod(uid) }) },
		},
		beside: func(_ *podworkers.Pass, do func()) { go do() },
	}
	a.maker = &passMaker{loopState: st, pulls: a.pulls}
	st.listeners = append([]Listener{st.log.hear, st.measure, a.hear}, s.Listeners...)
	st.metrics.ShowPods(a.lately)
	return a
}

// resolved follows what the keeper has decided.
func (a *Agent) resolved() {
	for _, p := range a.log.tellProblems(a.keeper.problems) {
		a.wakePod(p.Pod)
	}
	for _, name := range a.keeper.ledger.Order {
		a.log.tellTakeovers(name, a.keeper.takeoversOf(name))
	}
	a.forgetGone()
	a.look()
}

// recordsEach is how often all checkpoints are looked at, for pods of which the runtime has
// nothing; renewEach how often the facts of the machine and the runtime are asked for again.
const (
	recordsEach = time.Minute
	renewEach   = time.Minute
	// changesEach is how often it is looked whether a pod came or went, or a stored ConfigMap or Secret has changed.
	changesEach = time.Second
)

// Run keeps pods until the context ends. Then no pass begins any more, and those that run come to
// their end. Pods run on, unless the settings say that they are to stop.
func (a *Agent) Run(ctx context.Context) error {
	a.started = a.now()
	if err := a.reader.all(); err != nil {
		return err
	}
	a.watch(ctx)
	if a.settings.Started != nil {
		a.settings.Started()
	}
	a.loop(ctx)
	if a.settings.StopPods > 0 && !errors.Is(context.Cause(ctx), ErrHandover) {
		a.loopUntilStopped(ctx)
	}
	a.drain()
	return nil
}

// watch starts what tells the loop of changes.
func (a *Agent) watch(ctx context.Context) {
	tell := func(e pleg.Event) { a.inbox.post(ctx, func() { a.runtimeTells(&e) }) }
	generator := pleg.New(a.world.Client, cmp.Or(a.settings.Events, pleg.Usual()), tell)
	generator.Relisted, generator.Exits = a.metrics.Relisted, a.world.Exits
	go generator.Run(ctx)
	for _, s := range a.settings.Sources {
		to := make(chan chan struct{})
		a.rereads = append(a.rereads, rereads(ctx, s, to))
		go s.Run(ctx, to, func(u sources.Update) { a.inbox.post(ctx, func() { a.sourceTells(u) }) })
	}
	go a.inbox.every(ctx, recordsEach, func() {
		if err := a.reader.all(); err != nil {
			a.log.Error("reading the state directory", "error", err.Error())
		}
	})
	go a.inbox.every(ctx, renewEach, a.world.Renew)
	go a.reader.watch(ctx)
}

// Evictions lets a manager evict pods of the agent.
func (a *Agent) Evictions() eviction.Pods { return a.evicts }

// KeptPods are the pods that are kept; none once the agent has ended. It may be called from any goroutine.
func (s *loopState) KeptPods(ctx context.Context) []model.PodRef {
	refs, _ := ask(ctx, s.inbox, func() []model.PodRef {
		refs := make([]model.PodRef, 0, len(s.keeper.kept))
		for _, uid := range slices.Sorted(maps.Keys(s.keeper.kept)) {
			refs = append(refs, model.RefOf(s.keeper.kept[uid].Pod))
		}
		return refs
	})
	return refs
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sourceTells takes what a source wants.
func (a *Agent) sourceTells(u sources.Update) {
	a.log.tellNotes(u.Source, u.Notes)
	a.keeper.sourceSays(a.now(), u)
	a.admits.wake(a.now())
}

// runtimeTells takes what has happened in the runtime.
func (a *Agent) runtimeTells(e *pleg.Event) {
	now := a.now()
	switch {
	case e.Down != nil:
		a.runtime = runtimeState{since: now, err: e.Down.Error()}
		a.log.Warn("the runtime does not answer", "error", e.Down.Error())
		return
	case e.Up:
		a.runtime = runtimeState{up: true, since: now}
		a.log.Info("the runtime answers")
		a.world.Renew()
		a.workers.WakeAll(now)
	}
	for _, uid := range e.Pods {
		if !a.workers.Knows(uid) {
			// It may have been applied by hand just now.
			a.reader.one(uid)
		}
		a.workers.Wake(now, uid)
	}
}

// checkReady tells once that every source was read and every pod has had a pass.
func (s *loopState) checkReady() {
	if s.ready || !s.keeper.ledger.Complete() {
		return
	}
	for uid := range maps.Keys(s.keeper.kept) {
		if _, had := s.last[uid]; !had {
			return
		}
	}
	s.ready = true
	if s.settings.Ready != nil {
		s.settings.Ready()
	}
}
