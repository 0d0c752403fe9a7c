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

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/housekeeping"
	"github.com/podctl/podctl/runtime/agent/pleg"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/probers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/executor"
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
	// Changed is called when a pass has done something to a pod, or has found it in another phase or as ready as it was not
	// before. It must not wait; it may be nil.
	Changed func(uid types.UID)
	// Look takes up the stored workloads as they are now; nil for an agent that keeps none.
	Look func(ctx context.Context) error
	// Workloads are those that are kept, for the status; nil for an agent that keeps none.
	Workloads func() []api.Workload
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
	Exits func(ctx context.Context, told func(id string)) error
	// Housekeeper removes what pods leave behind; nil for nobody.
	Housekeeper *housekeeping.Housekeeper
	// Eviction evicts pods while the machine runs out of something; nil for nobody.
	Eviction *eviction.Manager
	Lister   Lister
	// Renew lets the facts of the machine and the runtime be asked for again.
	Renew func()
}

// Agent keeps pods until it is stopped. All that it decides is decided by one goroutine.
type Agent struct {
	settings Settings
	client   *cri.Client
	exits    func(ctx context.Context, told func(id string)) error
	keeping  *housekeeping.Housekeeper
	eviction *eviction.Manager
	renew    func()
	*shownPods

	log     *logger
	inbox   inbox
	workers *podworkers.Workers
	keeper  *keeper
	probes  *probing
	metrics *measuring
	admits  *admitting
	evicts  *evicting
	maker   *passMaker
	reader  *recordReader
	pulls   *pulling
	paths   *pathWatch
	// beside makes a pass beside the loop.
	beside func(p *podworkers.Pass, do func())
	// running are the passes that run, by pod; last is how the last pass of each ended.
	running map[types.UID]context.CancelFunc
	last    map[types.UID]lastPass
	// rereads let each source look now.
	rereads []func() reread
	runtime runtimeState
	pulse   pulse
	started time.Time
	ready   bool
	ending  *ending
	// next is when a pass is due, as begin has found it; zero for never. It holds while still is set:
	// since then nothing has happened that a pass could follow from.
	next  time.Time
	still bool
}

// ErrHandover says, as the cause of the end of the context of Run, that another agent follows at once:
// pods run on in any case.
var ErrHandover = errors.New("another agent follows")

// lastPass is what the last pass of a pod came to.
type lastPass struct {
	at time.Time
	// pod is what it brought about.
	pod     *podspec.Desired
	failure string
	waiting []string
	// rejection is why the pod is not admitted; nil for one that is.
	rejection *model.Rejection
	// eviction is why the pod is evicted; nil for one that is not.
	eviction *model.Eviction
	// idle is set for a pod that takes nothing any more.
	idle bool
	// found is how the pass has found it.
	found finding
}

// runtimeState is whether the runtime answers.
type runtimeState struct {
	up    bool
	since time.Time
	err   string
}

// New makes an agent.
func New(w World, s Settings) *Agent {
	order := make([]string, 0, len(s.Sources))
	for _, one := range s.Sources {
		order = append(order, one.Name())
	}
	a := &Agent{
		settings: s, client: w.Client, exits: w.Exits, keeping: w.Housekeeper, eviction: w.Eviction, renew: w.Renew,
		log: newLogger(s.Log), inbox: make(inbox), metrics: newMeasuring(w.Client, s.Now),
		running: map[types.UID]context.CancelFunc{}, last: map[types.UID]lastPass{},
		beside: func(_ *podworkers.Pass, do func()) { go do() },
	}
	random := s.Random
	if random == nil {
		random = rand.Float64
	}
	a.workers = podworkers.New(podworkers.Settings{Parallel: s.Parallel, Jitter: random})
	a.keeper = newKeeper(a.workers, order, s.Applied)
	a.keeper.read = w.Records.Read
	a.ending = &ending{workers: a.workers, keeper: a.keeper, now: s.Now, log: s.Log}
	a.pulls = &pulling{inbox: a.inbox, workers: a.workers, turns: map[types.UID][]chan struct{}{}}
	a.paths = &pathWatch{}
	a.reader = &recordReader{
		records: w.Records, keeper: a.keeper, workers: a.workers, inbox: a.inbox, log: a.log, now: s.Now,
		busy: func(uid types.UID) bool { return a.running[uid] != nil },
	}
	a.maker = &passMaker{
		Passes: w.Passes, records: w.Records, allowKubelet: s.AllowKubelet, own: order, now: s.Now, pulls: a.pulls,
		told: func(ctx context.Context, uid types.UID, e executor.Event) {
			a.log.step(ctx, e)
			a.metrics.step(ctx, e)
			a.changed(uid)
		},
	}
	a.shownPods = newShownPods(a.inbox, a.keeper, w.Lister, a.metrics.WatchDropped)
	a.metrics.ShowPods(a.lately)
	a.evicts = &evicting{
		inbox: a.inbox, keeper: a.keeper, workers: a.workers, now: s.Now, log: a.log, metrics: a.metrics.Metrics, last: a.last,
		waiting: map[types.UID]chan error{},
	}
	a.admits = newAdmitting(s.Admission, a.keeper, a.workers, a.log, a.metrics.Metrics)
	a.probes = &probing{
		prober: w.Prober, now: s.Now, log: a.log, metrics: a.metrics.Metrics, inbox: a.inbox,
		wake:  func(uid types.UID) { a.workers.Wake(s.Now(), uid) },
		still: func() { a.still = true },
		kept:  a.changed,
		set:   probers.New(s.Now(), random), pods: map[types.UID]probed{},
	}
	a.keeper.resolved = func() {
		for _, p := range a.log.tellProblems(a.keeper.problems) {
			a.workers.Wake(s.Now(), p.Pod)
		}
		for _, name := range order {
			a.log.tellTakeovers(name, a.keeper.takeoversOf(name))
		}
		a.forgetGone()
		a.look()
	}
	return a
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
	a.started = a.settings.Now()
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
	a.paths.wake = func(uid types.UID) { a.inbox.post(ctx, func() { a.workers.Wake(a.settings.Now(), uid) }) }
	tell := func(e pleg.Event) { a.inbox.post(ctx, func() { a.runtimeTells(&e) }) }
	generator := pleg.New(a.client, cmp.Or(a.settings.Events, pleg.Usual()), tell)
	generator.Relisted, generator.Exits = a.metrics.Relisted, a.exits
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
	go a.inbox.every(ctx, renewEach, a.renew)
	go a.reader.watch(ctx)
	if a.keeping != nil {
		go a.keeping.Run(ctx, a.keptPods)
	}
	if a.eviction != nil {
		go a.eviction.Run(ctx, a.evicts)
	}
}

// keptPods are the pods that are kept, for who works beside the loop; none once the agent ends.
func (a *Agent) keptPods(ctx context.Context) []model.PodRef {
	refs, _ := ask(ctx, a.inbox, func() []model.PodRef {
		refs := make([]model.PodRef, 0, len(a.keeper.kept))
		for _, uid := range slices.Sorted(maps.Keys(a.keeper.kept)) {
			refs = append(refs, model.RefOf(a.keeper.kept[uid].Pod))
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
	a.keeper.sourceSays(a.settings.Now(), u)
	a.admits.wake(a.settings.Now())
}

// runtimeTells takes what has happened in the runtime.
func (a *Agent) runtimeTells(e *pleg.Event) {
	now := a.settings.Now()
	switch {
	case e.Down != nil:
		a.runtime = runtimeState{since: now, err: e.Down.Error()}
		a.log.Warn("the runtime does not answer", "error", e.Down.Error())
		return
	case e.Up:
		a.runtime = runtimeState{up: true, since: now}
		a.log.Info("the runtime answers")
		a.renew()
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
func (a *Agent) checkReady() {
	if a.ready || !a.keeper.merged.Complete {
		return
	}
	for uid := range maps.Keys(a.keeper.kept) {
		if _, had := a.last[uid]; !had {
			return
		}
	}
	a.ready = true
	if a.settings.Ready != nil {
		a.settings.Ready()
	}
}
