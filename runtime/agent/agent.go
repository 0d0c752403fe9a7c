package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
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

// Settings configure an agent.
type Settings struct {
	// Sources provide the wanted pods, in the order of their rank.
	Sources []sources.Source
	// Applied also keeps the pods that were applied by hand.
	Applied bool
	// Parallel is the maximum number of passes that change something at the same time.
	Parallel int
	// Admission admits pods as a kubelet does. If nil, every pod is admitted.
	Admission *admission.Settings
	// Node returns the Node in the API, or nil if it is unknown. It may be nil.
	Node func() *admission.Node
	// AllowKubelet lets the agent run beside a kubelet on the same runtime.
	AllowKubelet bool
	// Now is the clock. Decisions are written to Log.
	Now func() time.Time
	Log *slog.Logger
	// Random returns numbers in [0, 1), which spread passes and probes over time. If nil, math/rand is used.
	Random func() float64
	// Events sets how often the runtime is queried. The zero value means the default times.
	Events pleg.Times
	// StopPods stops all pods within this time when the agent ends. If zero, the pods keep running.
	StopPods time.Duration
	// LastPasses limits how long running passes may take when the agent ends. The next agent continues a pass that is
	// cut off. If zero, the agent waits for all of them.
	LastPasses time.Duration
	// Ending is called at the end of the agent, after the last pass. The agent answers until it returns. It may be nil.
	Ending func()
	// Started is called once the agent has begun to keep pods. It may be nil.
	Started func()
	// Listeners are notified after the log, the metrics and the pod lists of the agent.
	Listeners []Listener
	// FactsChanged is called when the pressures or the shutdown of NodeFacts have changed. It must not block, and may
	// be nil.
	FactsChanged func()
	// Workloads are the stored workloads. They are nil for an agent that keeps none.
	Workloads Workloads
	// Ready is called once every source has been read and every pod has had a pass. It may be nil.
	Ready func()
}

// World is the environment of an agent.
type World struct {
	Passes  Passes
	Records Records
	Prober  Prober
	Client  *cri.Client
	// Exits calls onExit with the ID of each container whose process ends, before the runtime's records show it (see
	// pleg.Generator). It is nil if nothing can report exits.
	Exits  func(ctx context.Context, onExit func(id string)) error
	Lister Lister
	// Renew discards the cached facts of the machine and the runtime.
	Renew func()
}

// Workloads are the workloads that an agent keeps.
type Workloads interface {
	// ReadWorkloads reads the stored workloads again.
	ReadWorkloads(ctx context.Context) error
	// States returns the kept workloads for the status.
	States() []api.Workload
}

// Agent keeps pods until it is stopped. One goroutine, the loop, makes all decisions.
type Agent struct {
	*loopState
	*shownPods

	probes   *probeRunner
	admitter *admitter
	evictor  *evictor
	maker    *passMaker
	reader   *recordReader
	pulls    *pullQueue
	paths    *pathWatch
	stopper  *podStopper
	// runParallel runs do in parallel to the loop. do makes the pass p.
	runParallel func(p *podworkers.Pass, do func())
	// rereads make each source read its pods now.
	rereads []func() reread
	pulse   pulse
}

// ErrHandover is the cancellation cause of Run's context if another agent takes over. The pods then keep running, even
// with Settings.StopPods.
var ErrHandover = errors.New("another agent takes over")

// New returns an agent. Run starts it.
func New(w World, s Settings) *Agent {
	if s.Random == nil {
		s.Random = rand.Float64
	}
	var a *Agent
	st := newLoopState(w, s, func() { a.handleDecision() })
	e := &evictor{loopState: st, results: map[types.UID]chan error{}}
	a = &Agent{
		loopState: st,
		shownPods: newShownPods(st, st.metrics.WatchDropped),
		probes:    newProbeRunner(st),
		admitter:  newAdmitter(st, e.preempt),
		evictor:   e,
		reader:    &recordReader{st},
		pulls:     &pullQueue{loopState: st, turns: map[types.UID][]chan struct{}{}},
		stopper:   &podStopper{loopState: st},
		paths: &pathWatch{
			missing: map[types.UID][]string{}, watchers: map[types.UID]*fsnotify.Watcher{},
			wake: func(ctx context.Context, uid types.UID) { st.inbox.post(ctx, func() { st.wakePod(uid) }) },
		},
		runParallel: func(_ *podworkers.Pass, do func()) { go do() },
	}
	a.maker = &passMaker{loopState: st, pulls: a.pulls}
	st.listeners = append([]Listener{st.log.handleEvent, st.countEvent, a.handleEvent}, s.Listeners...)
	st.metrics.ShowPods(a.cachedPods)
	return a
}

// handleDecision applies and logs a decision of the reconciler.
func (a *Agent) handleDecision() {
	for _, p := range a.log.logProblems(a.reconciler.problems) {
		a.wakePod(p.Pod)
	}
	for _, name := range a.reconciler.ledger.Order {
		a.log.logTakeovers(name, a.reconciler.takeoversOf(name))
	}
	a.forget(a.gone()...)
	a.notePodsChanged()
}

// readInterval is how often all checkpoints are read, because the runtime reports no events for pods without
// containers. renewInterval is how often the facts of the machine and the runtime are renewed.
const (
	readInterval  = time.Minute
	renewInterval = time.Minute
	// checkInterval is how often the state directory is checked for added and removed pods, and for changed ConfigMaps
	// and Secrets.
	checkInterval = time.Second
)

// Run keeps pods until the context ends. Then no new pass begins, and Run waits for the running passes and then for
// Settings.Ending. The pods keep running unless Settings.StopPods is set.
func (a *Agent) Run(ctx context.Context) error {
	a.started = a.now()
	if err := a.reader.readAll(); err != nil {
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
	if a.settings.Ending != nil {
		a.inbox.runUntil(a.settings.Ending)
	}
	return nil
}

// watch starts the goroutines that notify the loop of changes.
func (a *Agent) watch(ctx context.Context) {
	notify := func(e pleg.Event) { a.inbox.post(ctx, func() { a.handleRuntimeEvent(&e) }) }
	generator := pleg.New(a.world.Client, cmp.Or(a.settings.Events, pleg.Usual()), notify)
	generator.Exits = a.world.Exits
	generator.Relisted = func(at time.Time, took time.Duration, err error) {
		if err == nil {
			a.facts.relisted.Store(&at)
		}
		a.metrics.Relisted(at, took)
	}
	go generator.Run(ctx)
	for _, s := range a.settings.Sources {
		to := make(chan chan struct{})
		a.rereads = append(a.rereads, rereads(ctx, s, to))
		go s.Run(ctx, to, func(u sources.Update) { a.inbox.post(ctx, func() { a.handleSourceUpdate(u) }) })
	}
	go a.inbox.every(ctx, readInterval, func() {
		if err := a.reader.readAll(); err != nil {
			a.log.Error("reading the state directory", "error", err.Error())
		}
	})
	go a.inbox.every(ctx, renewInterval, a.world.Renew)
	go a.reader.watch(ctx)
}

// Evictions returns the interface through which a manager evicts pods.
func (a *Agent) Evictions() eviction.Pods { return a.evictor }

// WakePod requests a pass of a pod. It is safe for concurrent use.
func (s *loopState) WakePod(ctx context.Context, uid types.UID) {
	s.inbox.post(ctx, func() { s.wakePod(uid) })
}

// ReadRecord reads the checkpoint of a pod that another part of the program has written. It is safe for concurrent use.
func (s *loopState) ReadRecord(ctx context.Context, uid types.UID) {
	s.inbox.post(ctx, func() { (&recordReader{s}).readOne(uid) })
}

// WakeUsers requests passes of the pods that need devices of a resource, because these have changed. It is safe for
// concurrent use.
func (s *loopState) WakeUsers(ctx context.Context, resource string) {
	s.inbox.post(ctx, func() {
		for uid, d := range s.reconciler.kept {
			if request := model.DeviceRequestOf(d.Pod); request.Needs(resource) {
				s.wakePod(uid)
			}
		}
	})
}

// WritingPods returns the pods whose containers may write logs: those that are kept, and those that are being deleted.
// It returns none once the agent has ended. It is safe for concurrent use.
func (s *loopState) WritingPods(ctx context.Context) []model.PodRef {
	refs, _ := call(ctx, s.inbox, func() []model.PodRef {
		var refs []model.PodRef
		for _, d := range s.reconciler.shownPods() {
			refs = append(refs, model.RefOf(d.Pod))
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

// handleSourceUpdate handles an update of a source.
func (a *Agent) handleSourceUpdate(u sources.Update) {
	a.log.logNotes(u.Source, u.Notes)
	a.reconciler.handleSourceUpdate(a.now(), u)
	a.admitter.wakeWaiting(a.now())
}

// handleRuntimeEvent handles an event of the runtime.
func (a *Agent) handleRuntimeEvent(e *pleg.Event) {
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
		if !a.workers.Has(uid) {
			// The pod may have just been applied by hand.
			a.reader.readOne(uid)
		}
		a.workers.Wake(now, uid)
	}
}

// checkReady calls Settings.Ready once every source has been read and every pod has had a pass.
func (s *loopState) checkReady() {
	if s.ready || !s.reconciler.ledger.Complete() {
		return
	}
	for uid := range maps.Keys(s.reconciler.kept) {
		if _, had := s.last[uid]; !had {
			return
		}
	}
	s.ready = true
	if s.settings.Ready != nil {
		s.settings.Ready()
	}
}
