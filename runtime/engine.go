package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/image"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/planfile"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// Engine is one container runtime together with podctl's state directory.
type Engine struct {
	client     *Client
	layout     state.Layout
	cgroupRoot string
	cgroups    Cgroups
	now        func() time.Time
	puller     *image.Puller
	// lockTimeout and waiting are as in Settings.
	lockTimeout time.Duration
	waiting     func(text string)

	nodeOnce  sync.Once
	nodeFacts criconfig.Node
	factsLock sync.Mutex
	facts     *runtimeFacts
	keyLock   sync.Mutex
	key       *podspec.DigestKey
	// kubelet tells whether a kubelet uses the same runtime.
	kubelet func() error
}

// Settings say where an engine keeps things.
type Settings struct {
	Layout state.Layout
	// CgroupRoot is the cgroup below which those of pods are made; empty means the
	// machine's own root, as for a kubelet.
	CgroupRoot string
	// Now is the clock.
	Now func() time.Time
	// Cgroups makes the pods' own cgroups; nil means those of the machine.
	Cgroups Cgroups
	// LockTimeout is how long another process that works on the same pod is waited
	// for; zero means as long as the context lasts.
	LockTimeout time.Duration
	// Waiting is told when that takes long, and what else may be waited for without an end;
	// nil tells nobody.
	Waiting func(text string)
}

// Cgroups are the control groups of pods, by their paths.
type Cgroups interface {
	Ensure(name string, r cgroup.Resources) error
	Exists(name string) bool
	Remove(name string) error
	Occupants(pods []string, containerID string, first int) (Occupants, bool)
}

// Occupants are the processes of a container, watched until Close.
type Occupants interface {
	Left() bool
	Close()
}

// machineCgroups are those of the machine.
type machineCgroups struct{}

func (machineCgroups) Ensure(name string, r cgroup.Resources) error { return cgroup.Ensure(name, r) }
func (machineCgroups) Exists(name string) bool                      { return cgroup.Exists(name) }
func (machineCgroups) Remove(name string) error                     { return cgroup.Remove(name) }
func (machineCgroups) Occupants(pods []string, containerID string, first int) (Occupants, bool) {
	return cgroup.FindOccupants(pods, containerID, first)
}

// NewEngine puts a connection and podctl's settings together.
func NewEngine(client *Client, s Settings) *Engine {
	e := &Engine{client: client, layout: s.Layout, cgroupRoot: s.CgroupRoot, cgroups: s.Cgroups, now: s.Now, puller: &image.Puller{}, lockTimeout: s.LockTimeout, waiting: s.Waiting}
	if e.cgroups == nil {
		e.cgroups = machineCgroups{}
	}
	if e.waiting == nil {
		e.waiting = func(string) {}
	}
	e.kubelet = sync.OnceValue(func() error { return checkKubelet(client.Endpoint.Address) })
	return e
}

// warmTimeout bounds what is asked ahead: an answer that takes longer is no gain.
const warmTimeout = time.Second

// Warm asks what every pass needs and no manifest decides, so that it is known once
// the manifests have been read: it is called beside that. What fails is asked again, and told, by
// whoever needs it.
func (e *Engine) Warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	go e.machine()
	_, _ = e.runtimeFacts(ctx)
}

// Options are the user's wishes for a pass.
type Options struct {
	plan.Options
	// Report is told of every step as it begins and ends; it may be nil. It is
	// called from several goroutines, one at a time.
	Report func(Event)
	// AllowKubelet lets a pass do what its plan says although a kubelet, which kills every
	// pod that it does not know, uses the same runtime.
	AllowKubelet bool
	// Only lets a deletion take away this manifest's pod and no other: one that was changed
	// or deleted meanwhile ends it with a *SupersededError. Nil means whatever there is.
	Only *podspec.Desired
	// Saved is the plan to execute, if it still fits; nil makes a new one.
	Saved *plan.Plan
	// Planned is told of every plan before it is executed; it may be nil.
	Planned func(*plan.Plan)
}

// maxReplans is how often one invocation makes a new plan because the world was
// not as observed.
const maxReplans = 3

// Plan observes a pod and decides what a pass would do to it. It changes
// nothing.
func (e *Engine) Plan(ctx context.Context, desired *podspec.Desired, opts plan.Options) (*plan.Plan, error) {
	in, _, err := e.input(ctx, model.RefOf(desired.Pod), desired, opts)
	if err != nil {
		return nil, err
	}
	return planfile.Make(in), nil
}

func (e *Engine) input(ctx context.Context, ref model.PodRef, desired *podspec.Desired, opts plan.Options) (*plan.Input, *snapshot.Pod, error) {
	s, err := e.observe(ctx, ref, desired)
	if err != nil {
		return nil, nil, err
	}
	if err := e.checkEndpoint(ref, s); err != nil {
		return nil, nil, err
	}
	return s.Input(ref, desired, opts), s, nil
}

// KeepDigests makes the machine's key of digests, if it has none: digests made from then
// on can be compared with later ones. It is called before any are made.
func (e *Engine) KeepDigests() error {
	if err := e.layout.MakeDigestKey(); err != nil {
		return err
	}
	e.keyLock.Lock()
	defer e.keyLock.Unlock()
	key, err := e.layout.DigestKey()
	if err == nil && (e.key == nil || e.key.ID() != key.ID()) {
		e.key = key
	}
	return err
}

// digestKey is the machine's key of digests, or where it has none one for this process.
func (e *Engine) digestKey() (key *podspec.DigestKey, err error) {
	e.keyLock.Lock()
	defer e.keyLock.Unlock()
	if e.key == nil {
		e.key, err = e.layout.DigestKey()
	}
	return e.key, err
}

// checkEndpoint refuses a pod that was applied to another runtime: it would run
// twice. A runtime that has records of the pod is the same one by another way.
func (e *Engine) checkEndpoint(ref model.PodRef, s *snapshot.Pod) error {
	j := s.Journal
	if j.Endpoint == "" || j.Endpoint == e.client.Endpoint.Address || len(s.Sandboxes)+len(s.Containers) > 0 {
		return nil
	}
	return fmt.Errorf("pod %s runs on %s, not on %s: name that runtime with --runtime-endpoint, or delete the pod there first",
		ref, j.Endpoint, e.client.Endpoint)
}

// Outcome is what a pass came to.
type Outcome struct {
	// Plan is the last plan that was executed.
	Plan *plan.Plan
	// Failed are the steps that failed, Left those that were not begun.
	Failed []StepError
	Left   []*plan.Step
}

// Err joins the failures of the pass; nil when every step was done.
func (o *Outcome) Err() error {
	errs := make([]error, 0, len(o.Failed))
	for i := range o.Failed {
		errs = append(errs, &o.Failed[i])
	}
	return errors.Join(errs...)
}

// Apply makes one pass: it locks the pod, observes, plans and executes. When the
// world turns out to be other than observed it makes a new plan, three times at
// most.
func (e *Engine) Apply(ctx context.Context, desired *podspec.Desired, opts Options) (*Outcome, error) {
	return e.pass(ctx, model.RefOf(desired.Pod), desired, opts)
}

// Delete stops and removes a pod and everything podctl made for it, through the
// same path as Apply, with nothing desired.
func (e *Engine) Delete(ctx context.Context, ref model.PodRef, opts Options) (*Outcome, error) {
	return e.pass(ctx, ref, nil, opts)
}

// PlanDeletion decides what Delete would do. It changes nothing.
func (e *Engine) PlanDeletion(ctx context.Context, ref model.PodRef, opts plan.Options) (*plan.Plan, error) {
	in, _, err := e.input(ctx, ref, nil, opts)
	if err != nil {
		return nil, err
	}
	return planfile.Make(in), nil
}

func (e *Engine) pass(ctx context.Context, ref model.PodRef, desired *podspec.Desired, opts Options) (outcome *Outcome, err error) {
	ctx, end := startSpan(ctx, "pass", podAttributes(ref)...)
	defer func() { end(err) }()
	lock, err := e.lock(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if desired != nil {
		if err = e.KeepDigests(); err != nil {
			return nil, fmt.Errorf("pod %s: %w", ref, err)
		}
	}
	reserved := map[string]uint32{}
	for try := 0; ; try++ {
		outcome, err = e.attempt(ctx, ref, desired, opts, reserved)
		surprise := (*surpriseError)(nil)
		if !errors.As(err, &surprise) || try == maxReplans || opts.Saved != nil {
			return outcome, err
		}
		surprise.learn(reserved)
	}
}

// attempt observes, plans and executes once. Reserved are the attempts of containers that
// the runtime said are taken.
func (e *Engine) attempt(ctx context.Context, ref model.PodRef, desired *podspec.Desired, opts Options, reserved map[string]uint32) (*Outcome, error) {
	freePorts, err := e.reservePorts(ctx, desired)
	if err != nil {
		return nil, err
	}
	defer freePorts()
	in, s, err := e.input(ctx, ref, desired, opts.Options)
	if err != nil {
		return nil, err
	}
	if err = superseded(ref, cmp.Or(desired, opts.Only), s.Journal); err != nil {
		return nil, err
	}
	in.Observed.Memory.Reserved = reserved
	p, err := opts.makePlan(in)
	if err != nil {
		return nil, err
	}
	x := e.newExecution(in, p, s, opts)
	x.begun = freePorts
	return x.run(ctx)
}

func (o *Options) makePlan(in *plan.Input) (*plan.Plan, error) {
	if o.Saved != nil {
		return planfile.MakeAgain(in, o.Saved)
	}
	return planfile.Make(in), nil
}

func (e *Engine) volumeContext(desired *podspec.Desired) volume.Context {
	return volume.Context{Pod: e.layout.Pod(desired.Pod.UID), Desired: desired, Allocatable: e.node().Allocatable}
}
