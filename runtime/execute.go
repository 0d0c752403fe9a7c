package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// maxConcurrent bounds the steps that run side by side.
const maxConcurrent = 8

// execution carries out one plan, step by step and to the letter. It knows what
// the plan could not: the ids that its own steps yield.
type execution struct {
	e        *Engine
	plan     *plan.Plan
	desired  *podspec.Desired
	snapshot *snapshot.Pod
	journal  *state.Journal
	opts     Options
	// redactor takes out what runtimes, hooks and probes repeat of Secrets, of those before
	// as well.
	redactor *redaction.Redactor
	slots    chan struct{}
	// stops bounds the stops, which take no slot.
	stops crowd
	// debug is the container that the plan starts beside the manifest; nil as a rule.
	debug *v1.EphemeralContainer
	// begun is told once it is written down what is about to be done.
	begun func()
	// act carries out one step.
	act func(context.Context, *plan.Step) (string, error)

	// turns has one for each step.
	turns map[string]*turn

	mu     sync.Mutex
	told   chronicle
	states map[string]stepState
	failed []StepError
	// refused are steps of which a part is not done by podctl, whoever asks.
	refused  []StepError
	left     []*plan.Step
	surprise *surpriseError
	aborted  bool
	// yield is what steps produce for those after them.
	yield yield
}

// yield is what did not exist when the plan was made.
type yield struct {
	sandboxID string
	config    *runtimeapi.PodSandboxConfig
	podIPs    []string
	images    map[string]model.Image
	// started holds the ids of containers by name.
	started map[string]string
	// created holds the replacements that were created before their turn, by step.
	created map[string]creation
}

// stepState is how a step ended for those that come after it.
type stepState int

const (
	stepPassed stepState = iota
	stepBlocks
)

// turn is how far a step has come, for those that come after it.
type turn struct {
	// done is closed when the step has ended.
	done chan struct{}
	// exited is closed when no process is left of the container that the step stops, at
	// the latest when the step has ended.
	exited chan struct{}
	exit   func()
}

func newTurn() *turn {
	exited := make(chan struct{})
	return &turn{done: make(chan struct{}), exited: exited, exit: sync.OnceFunc(func() { close(exited) })}
}

// reached is closed when the step has come as far as others need it.
func (t *turn) reached(until plan.Until) <-chan struct{} {
	if until == plan.Exited {
		return t.exited
	}
	return t.done
}

func (t *turn) end() {
	t.exit()
	close(t.done)
}

func (e *Engine) newExecution(in *plan.Input, p *plan.Plan, s *snapshot.Pod, opts Options) *execution {
	x := &execution{
		e: e, plan: p, desired: in.Desired, snapshot: s, journal: s.Journal, opts: opts,
		redactor: s.Journal.Redactor(in.Desired),
		slots:    make(chan struct{}, maxConcurrent), stops: make(crowd, maxConcurrent), turns: map[string]*turn{}, states: map[string]stepState{},
	}
	x.act, x.begun = x.do, func() {}
	x.yield.images, x.yield.started, x.yield.created = in.Observed.Images, map[string]string{}, map[string]creation{}
	x.yield.sandboxID = x.plan.SandboxID
	for i := range in.Observed.Sandboxes {
		if in.Observed.Sandboxes[i].ID == x.plan.SandboxID {
			x.yield.podIPs = in.Observed.Sandboxes[i].IPs
		}
	}
	return x
}

// run executes the plan and writes down what only podctl can remember.
func (x *execution) run(ctx context.Context) (*Outcome, error) {
	if x.opts.Planned != nil {
		x.opts.Planned(x.plan)
	}
	if err := x.permitted(); err != nil {
		return nil, err
	}
	if x.debug == nil {
		if err := x.begin(); err != nil {
			return nil, err
		}
	}
	x.begun()
	x.walk(ctx)
	return x.end(ctx)
}

// permitted is a *LiveKubeletError when a kubelet would kill what the plan starts. It is
// asked this late because to look for a kubelet takes as long as to observe the pod, and is
// done beside that.
func (x *execution) permitted() error {
	if x.desired == nil || len(x.plan.Steps) == 0 || x.opts.AllowKubelet {
		return nil
	}
	return x.e.CheckKubelet()
}

// walk runs the steps of the plan, each when its turn has come.
func (x *execution) walk(ctx context.Context) {
	for i := range x.plan.Steps {
		x.turns[x.plan.Steps[i].ID] = newTurn()
	}
	var group sync.WaitGroup
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		group.Go(func() {
			defer x.turns[s.ID].end()
			x.createEarly(ctx, s)
			x.await(s.Needs.Of(plan.Begin))
			x.visit(ctx, s)
		})
	}
	group.Wait()
}

// await waits for steps that come before others, for each until it has come as far as they
// need it.
func (x *execution) await(needs plan.Needs) {
	for _, e := range needs {
		<-x.turns[e.Step].reached(e.Until)
	}
}

// visit runs one step whose turn has come, or skips it.
func (x *execution) visit(ctx context.Context, s *plan.Step) {
	ev := x.perform(ctx, s)
	if ev == nil {
		return
	}
	for _, e := range s.Needs.Of(plan.Begin) {
		<-x.turns[e.Step].done // What came first is told first.
	}
	x.report(*ev)
}

// perform runs one step when there is room for it, and says what came of it; nil when it
// was skipped.
func (x *execution) perform(ctx context.Context, s *plan.Step) *Event {
	if s.Kind != plan.StopContainer {
		// Stops wait for others to end, and would keep them from beginning.
		x.slots <- struct{}{}
		defer func() { <-x.slots }()
	}
	if x.mustSkip(ctx, s) {
		return nil
	}
	ctx, end := startSpan(ctx, string(s.Kind), attribute.String("k8s.container.name", s.Container))
	began := x.e.now()
	x.report(Event{Kind: StepStarted, Step: s, Time: began})
	detail, err := x.act(ctx, s)
	end(err)
	err = x.redactor.Error(err)
	ended := x.e.now()
	ev := &Event{Kind: StepDone, Step: s, Time: ended, Took: ended.Sub(began), Detail: detail}
	if err != nil {
		ev.Kind, ev.Err = StepFailed, x.fail(s, err)
	}
	return ev
}

// mustSkip tells that a step is not begun: the pass was interrupted or aborted,
// or a step before it failed in a way that stops those after it. What may fail may also be
// skipped: a container whose image cannot be had does not keep those after it from starting
// (kubelet: SyncPod, start).
func (x *execution) mustSkip(ctx context.Context, s *plan.Step) bool {
	x.mu.Lock()
	blocked := x.blocked(ctx, s.Needs.Of(plan.Begin))
	if blocked {
		if s.OnFailure != plan.Continue {
			x.states[s.ID] = stepBlocks
		}
		x.left = append(x.left, s)
	}
	x.mu.Unlock()
	if blocked {
		x.dropCreated(ctx, s)
		x.report(Event{Kind: StepSkipped, Step: s, Time: x.e.now()})
	}
	return blocked
}

// blocked reports whether nothing begins any more that needs some steps. It is asked with mu held.
func (x *execution) blocked(ctx context.Context, needs plan.Needs) bool {
	return x.aborted || ctx.Err() != nil ||
		slices.ContainsFunc(needs, func(e plan.Edge) bool { return x.states[e.Step] == stepBlocks })
}

// fail records a failure and what it means for the other steps. A surprise ends
// the pass without being a failure: a new plan is made.
func (x *execution) fail(s *plan.Step, err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if surprise := (*surpriseError)(nil); errors.As(err, &surprise) {
		x.surprise, x.aborted = surprise, true
		x.states[s.ID] = stepBlocks
		return err
	}
	failure := StepError{Pod: x.plan.Pod, Step: s, Reason: reasonOf(err, model.Reason(s.Kind)), Err: err}
	x.failed = append(x.failed, failure)
	switch s.OnFailure {
	case plan.Abort:
		x.aborted = true
		x.states[s.ID] = stepBlocks
	case plan.SkipContainer:
		x.states[s.ID] = stepBlocks
	case plan.Continue:
	}
	return &failure
}

// report tells one event at a time.
func (x *execution) report(ev Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ev.Pod, ev.Detail = x.plan.Pod, x.redactor.Text(ev.Detail)
	x.told.note(&ev)
	if x.opts.Report != nil {
		x.opts.Report(ev)
	}
}

// do carries out one step. There is no other place where a plan meets the
// world.
func (x *execution) do(ctx context.Context, s *plan.Step) (string, error) {
	switch s.Kind {
	case plan.CreateCgroup, plan.UpdatePod:
		return "", x.applyCgroup()
	case plan.RemoveCgroup:
		return "", x.removeCgroup()
	case plan.PrepareVolume, plan.UpdateVolume:
		return "", x.prepareVolume(ctx, s)
	case plan.RemoveVolume:
		return "", x.removeVolumes(ctx, s)
	case plan.PullImage:
		return x.pullImage(ctx, s)
	case plan.CheckContainer:
		return "", x.checkContainer(ctx, s)
	case plan.RunSandbox:
		return x.runSandbox(ctx, s)
	case plan.StopSandbox:
		return "", x.stopSandbox(ctx, s)
	case plan.RemoveSandbox:
		return "", x.removeSandbox(ctx, s)
	case plan.StartContainer:
		return x.startContainer(ctx, s)
	case plan.StopContainer:
		return x.stopContainer(ctx, s)
	case plan.RemoveContainer:
		return "", x.removeContainer(ctx, s)
	case plan.UpdateContainer:
		return "", x.updateContainer(ctx, s)
	case plan.ArchiveLogs:
		return "", x.archiveLogs()
	case plan.RotateLog:
		return "", x.rotateLog(ctx, s)
	}
	return "", fmt.Errorf("unknown kind of step %q", s.Kind)
}

func (x *execution) end(ctx context.Context) (*Outcome, error) {
	outcome := &Outcome{Plan: x.plan, Failed: slices.Concat(x.failed, x.refused), Left: x.left}
	var err error
	var group sync.WaitGroup
	group.Go(x.chronicle)
	if x.debug == nil {
		err = x.remember()
	}
	group.Wait()
	switch {
	case err != nil:
		return outcome, err
	case x.surprise != nil:
		return outcome, fmt.Errorf("pod %s: %w", x.plan.Pod, x.redactor.Error(x.surprise))
	case ctx.Err() != nil:
		return outcome, x.cutOff(context.Cause(ctx))
	}
	return outcome, nil
}

// cutOff says what was being done when the pass was interrupted.
func (x *execution) cutOff(cause error) error {
	var during []string
	for i := range x.failed {
		if !errors.Is(x.failed[i].Err, cause) {
			continue
		}
		s := x.failed[i].Step
		during = append(during, strings.TrimSpace(s.Kind.Verb()+" "+s.Object()))
	}
	if len(during) == 0 {
		return fmt.Errorf("pod %s: %w", x.plan.Pod, cause)
	}
	return fmt.Errorf("pod %s: %w during: %s", x.plan.Pod, cause, strings.Join(during, ", "))
}
