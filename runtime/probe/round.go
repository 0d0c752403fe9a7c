package probe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// Report is the answer of one probe of one container, or why it was not asked.
type Report struct {
	Pod           model.PodRef
	Container     string
	ContainerType podspec.ContainerType
	ContainerID   string
	Type          model.ProbeType
	// Asked reports whether the probe ran; Skipped says why it did not.
	Asked   bool
	Skipped string
	Result  Result
	// Probe is the probe as the manifest had it, Threshold how many equal verdicts in a row decide.
	Probe     *v1.Probe
	Threshold int32
	// Record is the memory of the probe with this answer, Known the one that the checkpoint had when it was read last: one that
	// differs was written by another process since.
	Record, Known model.ProbeRecord
	// Counted reports whether this run counts towards the threshold.
	Counted bool
	// Changed reports whether the record is to be written, Told whether the answer is an event.
	Changed, Told bool
	// Look reports whether the verdict changed or is final now: once it is written, the pod needs a pass.
	Look bool
}

// Keep reports whether there is something to write: the record or an event.
func (r *Report) Keep() bool { return r.Changed || r.Told }

// Verdict is the report's result in the planner's words: Unknown when the probe
// was not asked or could not be judged.
func (r *Report) Verdict() model.ProbeResult {
	if !r.Asked {
		return model.ProbeUnknown
	}
	return r.Result.Judged()
}

// Options choose which probes are asked.
type Options struct {
	// Container and Type restrict the probes; empty means all.
	Container string
	Type      model.ProbeType
	// NoRecord leaves the answers out of podctl's memory.
	NoRecord bool
	// Due asks only probes whose period has passed since they were last counted.
	Due bool
	// Memory holds records in the place of podctl's own, and keeps the new ones; nil
	// means podctl's.
	Memory Memory
}

// Memory holds the records of probes by container id and type.
type Memory map[string]map[model.ProbeType]model.ProbeRecord

// keep notes the records that changed.
func (m Memory) keep(reports []Report) {
	if m == nil {
		return
	}
	for i := range reports {
		r := &reports[i]
		if !r.Changed {
			continue
		}
		if m[r.ContainerID] == nil {
			m[r.ContainerID] = map[model.ProbeType]model.ProbeRecord{}
		}
		m[r.ContainerID][r.Type] = r.Record
	}
}

// Decided reports whether the probe's threshold has been reached, one way or the other.
func (r *Report) Decided() bool {
	return r.ContainerID != "" && (r.Record.OnHold || (r.Record.Last != "" && r.Record.Run >= r.Threshold))
}

// Prober asks the probes of pods, and remembers the answers.
type Prober struct {
	client   *cri.Client
	layout   state.Layout
	observer *observe.Observer
	locker   *state.Locker
	held     *Held
	// Changed is called when what is remembered of a pod's probes has changed; nil for nobody.
	Changed func(ctx context.Context, uid types.UID)
}

// NewProber makes a Prober.
func NewProber(client *cri.Client, layout state.Layout, observer *observe.Observer, locker *state.Locker) *Prober {
	return &Prober{client: client, layout: layout, observer: observer, locker: locker, held: &Held{}}
}

// Held are the checkpoints that passes hold, through which the Prober writes.
func (p *Prober) Held() *Held { return p.held }

// Probe asks the probes of a pod once, now and side by side, and remembers the
// answers.
func (p *Prober) Probe(ctx context.Context, desired *podspec.Desired, opts Options) ([]Report, error) {
	ref := model.RefOf(desired.Pod)
	s, err := p.observer.Observe(ctx, ref, desired)
	if err != nil {
		return nil, err
	}
	reports := p.Ask(ctx, desired, s, opts)
	if opts.NoRecord || ctx.Err() != nil {
		return reports, context.Cause(ctx)
	}
	if err := p.Record(ctx, ref, s, reports); err != nil {
		return reports, &UnrecordedError{Err: err}
	}
	// What another process counted meanwhile is in them now.
	opts.Memory.keep(reports)
	return reports, nil
}

// HasAny reports whether a container of a pod has a probe.
func HasAny(pod *v1.Pod) bool {
	return slices.ContainsFunc(podspec.Containers(pod), func(ref podspec.ContainerRef) bool {
		return ref.LivenessProbe != nil || ref.ReadinessProbe != nil || ref.StartupProbe != nil
	})
}

// IsDue reports whether the period of a probe has passed, as far as an observation of its pod shows.
func IsDue(desired *podspec.Desired, observed *model.Observed, now time.Time) bool {
	q := &round{desired: desired, observed: *observed, now: now, opts: Options{Due: true}}
	return slices.ContainsFunc(q.list(), func(r Report) bool { return r.Skipped == "" })
}

// Unobserved are the probes of a pod that could not be observed: none is asked, with the reason.
func Unobserved(desired *podspec.Desired, opts Options, reason string) []Report {
	reports := (&round{desired: desired, opts: opts}).list()
	for i := range reports {
		reports[i].Skipped = reason
	}
	return reports
}

// UnrecordedError says that probes were asked and their answers could not be
// remembered.
type UnrecordedError struct{ Err error }

// Error says what happened.
func (e *UnrecordedError) Error() string {
	return "the answers of the probes are not remembered: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// Ask runs the probes that can be asked now.
func (p *Prober) Ask(ctx context.Context, desired *podspec.Desired, s *snapshot.Pod, opts Options) []Report {
	q := &round{e: p, desired: desired, observed: s.Observed(model.RefOf(desired.Pod), desired), now: s.TakenAt, opts: opts}
	q.redactor = s.Checkpoint.Redactor(desired)
	if opts.Memory != nil {
		for id, records := range q.observed.Memory.Probes {
			if opts.Memory[id] == nil {
				opts.Memory[id] = maps.Clone(records)
			}
		}
		q.observed.Memory.Probes = opts.Memory
	}
	reports := q.list()
	var group sync.WaitGroup
	for i := range reports {
		if reports[i].Skipped == "" {
			group.Go(func() { q.run(ctx, &reports[i]) })
		}
	}
	group.Wait()
	opts.Memory.keep(reports)
	return reports
}

// inquiry is one round of probes of one pod.
type round struct {
	e        *Prober
	desired  *podspec.Desired
	observed model.Observed
	now      time.Time
	opts     Options
	redactor *redaction.Redactor
}

// list names every probe that was asked for, with the reason for those that
// cannot be asked now.
func (q *round) list() []Report {
	var reports []Report
	for _, ref := range podspec.Containers(q.desired.Pod) {
		for _, t := range model.ProbeTypes() {
			p := model.ProbeOf(ref.Container, t)
			if p == nil || (q.opts.Container != "" && q.opts.Container != ref.Name) || (q.opts.Type != "" && q.opts.Type != t) {
				continue
			}
			reports = append(reports, q.report(ref, t, p))
		}
	}
	return reports
}

func (q *round) report(ref podspec.ContainerRef, t model.ProbeType, p *v1.Probe) Report {
	r := Report{
		Pod: model.RefOf(q.desired.Pod), Container: ref.Name, ContainerType: ref.Type, Type: t,
		Threshold: p.FailureThreshold, Record: model.InitialProbe(t), Probe: p,
	}
	c := q.newest(ref.Name)
	if c == nil || c.State != model.Running {
		r.Skipped = "container is not running"
		return r
	}
	if c.Starting {
		r.Skipped = "its postStart hook is running"
		return r
	}
	r.ContainerID = c.ID
	if record, ok := q.observed.Memory.Probes[c.ID][t]; ok {
		r.Record = record.Reopened(p, q.now, time.Time{})
	}
	r.Skipped = q.skipReason(ref.Container, c, t, p, &r.Record)
	return r
}

// skipReason says why a running container's probe is not asked now (kubelet:
// worker.doProbe): its initial delay has not passed, its startup probe has not,
// or it has been decided for good.
func (q *round) skipReason(spec *v1.Container, c *model.Container, t model.ProbeType, p *v1.Probe, record *model.ProbeRecord) string {
	running := q.now.Sub(c.StartedAt)
	delay := model.Seconds(p.InitialDelaySeconds)
	started := spec.StartupProbe == nil || q.observed.Memory.Probes[c.ID][model.Startup].Result == model.ProbeSuccess
	switch {
	case running < delay && !model.AheadOf(q.now, c.StartedAt):
		return fmt.Sprintf("initial delay: %s of %s have passed", max(running, 0).Truncate(time.Second), delay)
	case t != model.Startup && !started:
		return "waits for the startup probe"
	case t == model.Startup && started && spec.StartupProbe != nil && q.opts.Due:
		return "passed already"
	case record.OnHold && q.opts.Due:
		return "decided already"
	case q.opts.Due && !record.Counts(p, q.now):
		return "its period has not passed"
	}
	return ""
}

func (q *round) newest(name string) *model.Container {
	return q.observed.Newest(func(c *model.Container) bool { return c.Name == name })
}

func (q *round) run(ctx context.Context, r *Report) {
	ref, _ := podspec.FindContainer(q.desired.Pod, r.Container)
	target := Target{ContainerID: r.ContainerID, Container: ref.Container, PodIP: q.podIP(r.Container)}
	r.Result = q.e.AskOne(ctx, r.Probe, target, q.redactor)
	r.Asked, r.Changed, r.Told = true, true, true
	r.Counted = r.Record.Counts(r.Probe, q.now)
	r.Fold(r.Record, q.now)
	if r.Verdict() == model.ProbeSuccess {
		r.Threshold = r.Probe.SuccessThreshold
	}
}

// Fold puts this run onto a record of the probe. A run that is not Counted changes its message alone. What is decided stays, with
// the message of the answer that decided it.
func (r *Report) Fold(record model.ProbeRecord, at time.Time) {
	r.Record = record
	if r.Counted {
		r.Record = record.Fold(r.Type, r.Probe, r.Result.Judged(), at)
	}
	if !record.OnHold {
		r.Record.Message = r.Result.Message
	}
}

// settle puts this run onto the record that the checkpoint has by now. Another process may
// have asked the probe since this one looked: what that one found out is newer, and stays.
// A time that lay in the future even then is a clock's that was set back.
func (r *Report) settle(now, before Memory, at time.Time) {
	record, known := now[r.ContainerID][r.Type]
	if !known {
		record = model.InitialProbe(r.Type)
	}
	since := !record.CountedAt.Equal(before[r.ContainerID][r.Type].CountedAt)
	if since && record.CountedAt.After(at) {
		r.Record, r.Counted = record, false
		return
	}
	record = record.Reopened(r.Probe, at, time.Time{})
	r.Counted = record.Counts(r.Probe, at)
	r.Fold(record, at)
}

// podIP is the address of the sandbox in which a container runs, whatever the manifest says of
// its network by now.
func (q *round) podIP(name string) string {
	return q.observed.SandboxOf(q.newest(name).SandboxID).Address(q.observed.NodeIPs)
}

// AskOne asks one probe now, without a look at its pod: three times if it cannot be asked, as
// every probe (kubelet: maxProbeRetries). The answer is without what the redactor knows: it may
// repeat what the container was given, or the one before.
func (p *Prober) AskOne(ctx context.Context, probe *v1.Probe, target Target, redactor *redaction.Redactor) Result {
	return Runner{Exec: p.exec, Clean: redactor.Text}.Run(ctx, probe, target)
}

// exec runs the command of a probe.
func (p *Prober) exec(ctx context.Context, id string, command []string, timeout time.Duration) (ExecResult, error) {
	reply, err := p.client.RunCommand(ctx, id, command, timeout)
	return ExecResult{Stdout: reply.GetStdout(), Stderr: reply.GetStderr(), ExitCode: reply.GetExitCode()}, err
}
