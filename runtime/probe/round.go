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
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// Report is the result of one probe of one container, or the reason why it did not run.
type Report struct {
	Pod           model.PodRef
	Container     string
	ContainerType podspec.ContainerType
	ContainerID   string
	Type          model.ProbeType
	// Ran reports whether the probe ran. Skipped is the reason why it did not.
	Ran     bool
	Skipped string
	Result  Result
	// Probe is the probe in the manifest. Threshold is how many equal verdicts in a row decide.
	Probe     *v1.Probe
	Threshold int32
	// Record is the record of the probe including this result. Known is the record of the checkpoint when it was last
	// read: a different one was written by another process since.
	Record, Known model.ProbeRecord
	// Counted reports whether this run counts towards the threshold.
	Counted bool
	// Changed reports whether to write the record. IsEvent reports whether the result is an event.
	Changed, IsEvent bool
	// NeedsPass reports whether the verdict has changed or is now final. Once it is written, the pod needs a pass.
	NeedsPass bool
}

// NeedsWrite reports whether the record or an event must be written.
func (r *Report) NeedsWrite() bool { return r.Changed || r.IsEvent }

// Verdict returns the result for the planner. It is Unknown if the probe did not run or could not be judged.
func (r *Report) Verdict() model.ProbeResult {
	if !r.Ran {
		return model.ProbeUnknown
	}
	return r.Result.Judged()
}

// Options select the probes to run.
type Options struct {
	// Container and Type restrict the probes. If empty, all are selected.
	Container string
	Type      model.ProbeType
	// NoRecord does not record the results in the checkpoint.
	NoRecord bool
	// Due selects only probes whose period has passed since they last counted.
	Due bool
	// Memory holds the records to use instead of those in the checkpoint, and receives the new ones. If nil, the
	// checkpoint is used.
	Memory Memory
}

// Memory holds the records of probes by container ID and type.
type Memory map[string]map[model.ProbeType]model.ProbeRecord

// store stores the changed records.
func (m Memory) store(reports []Report) {
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

// Decided reports whether the probe's threshold has been reached for success or failure.
func (r *Report) Decided() bool {
	return r.ContainerID != "" && (r.Record.OnHold || (r.Record.Last != "" && r.Record.Run >= r.Threshold))
}

// Prober runs the probes of pods, and records the results.
type Prober struct {
	client   *cri.Client
	layout   state.Layout
	observer *observe.Observer
	locker   *state.Locker
	held     *Held
	// Changed is called after the recorded state of a pod's probes has changed. It may be nil.
	Changed func(ctx context.Context, uid types.UID)
	// Recorded is notified of the events of probes. It may be nil.
	Recorded events.Listener
}

// NewProber returns a Prober.
func NewProber(client *cri.Client, layout state.Layout, observer *observe.Observer, locker *state.Locker) *Prober {
	return &Prober{client: client, layout: layout, observer: observer, locker: locker, held: &Held{}}
}

// Held returns the checkpoints that passes hold. The Prober writes through them.
func (p *Prober) Held() *Held { return p.held }

// Probe runs the probes of a pod once, in parallel, and records the results.
func (p *Prober) Probe(ctx context.Context, desired *podspec.Desired, opts Options) ([]Report, error) {
	ref := model.RefOf(desired.Pod)
	s, err := p.observer.Observe(ctx, ref, desired)
	if err != nil {
		return nil, err
	}
	reports := p.RunAll(ctx, desired, s, opts)
	if opts.NoRecord || ctx.Err() != nil {
		return reports, context.Cause(ctx)
	}
	if err := p.Record(ctx, ref, s, reports); err != nil {
		return reports, &UnrecordedError{Err: err}
	}
	// The reports now include results that another process has counted in the meantime.
	opts.Memory.store(reports)
	return reports, nil
}

// HasAny reports whether a container of a pod has a probe.
func HasAny(pod *v1.Pod) bool {
	return slices.ContainsFunc(podspec.Containers(pod), func(ref podspec.ContainerRef) bool {
		return ref.LivenessProbe != nil || ref.ReadinessProbe != nil || ref.StartupProbe != nil
	})
}

// IsDue reports whether the period of any probe has passed, according to an observation of its pod.
func IsDue(desired *podspec.Desired, observed *model.Observed, now time.Time) bool {
	q := &round{desired: desired, observed: *observed, now: now, opts: Options{Due: true}}
	return slices.ContainsFunc(q.list(), func(r Report) bool { return r.Skipped == "" })
}

// Unobserved returns the reports of a pod that could not be observed: no probe ran, for the given reason.
func Unobserved(desired *podspec.Desired, opts Options, reason string) []Report {
	reports := (&round{desired: desired, opts: opts}).list()
	for i := range reports {
		reports[i].Skipped = reason
	}
	return reports
}

// UnrecordedError reports that probes ran but their results could not be recorded.
type UnrecordedError struct{ Err error }

// Error returns the message with the cause.
func (e *UnrecordedError) Error() string {
	return "recording the probe results: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// RunAll runs the probes that can run now.
func (p *Prober) RunAll(ctx context.Context, desired *podspec.Desired, s *snapshot.Pod, opts Options) []Report {
	q := &round{
		e:        p,
		desired:  desired,
		observed: s.Observed(model.RefOf(desired.Pod), desired),
		now:      s.TakenAt,
		opts:     opts,
	}
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
	opts.Memory.store(reports)
	return reports
}

// round is one round of probes of one pod.
type round struct {
	e        *Prober
	desired  *podspec.Desired
	observed model.Observed
	now      time.Time
	opts     Options
	redactor *redaction.Redactor
}

// list returns the selected probes. Those that cannot run now have a reason.
func (q *round) list() []Report {
	var reports []Report
	for _, ref := range podspec.Containers(q.desired.Pod) {
		for _, t := range model.ProbeTypes() {
			p := model.ProbeOf(ref.Container, t)
			if p == nil || (q.opts.Container != "" && q.opts.Container != ref.Name) ||
				(q.opts.Type != "" && q.opts.Type != t) {
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

// skipReason returns why a running container's probe does not run now (kubelet: worker.doProbe): its initial delay has
// not passed, its startup probe has not succeeded, or it is finally decided.
func (q *round) skipReason(
	spec *v1.Container, c *model.Container, t model.ProbeType, p *v1.Probe, record *model.ProbeRecord,
) string {
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
	r.Result = q.e.RunOne(ctx, r.Probe, target, q.redactor)
	r.Ran, r.Changed, r.IsEvent = true, true, true
	r.Counted = r.Record.Counts(r.Probe, q.now)
	r.Fold(r.Record, q.now)
	if r.Verdict() == model.ProbeSuccess {
		r.Threshold = r.Probe.SuccessThreshold
	}
}

// Fold applies this run to a record of the probe. If the run is not Counted, only the message changes. A decided record
// keeps the message of the deciding result.
func (r *Report) Fold(record model.ProbeRecord, at time.Time) {
	r.Record = record
	if r.Counted {
		r.Record = record.Fold(r.Type, r.Probe, r.Result.Judged(), at)
	}
	if !record.OnHold {
		r.Record.Message = r.Result.Message
	}
}

// rebase applies this run to the present record in the checkpoint. A newer result of another process stays. A record
// whose time was already in the future comes from a clock that was set back.
func (r *Report) rebase(now, before Memory, at time.Time) {
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

// podIP returns the address of the sandbox in which a container runs, even if the manifest has another network by now.
func (q *round) podIP(name string) string {
	return q.observed.SandboxOf(q.newest(name).SandboxID).Address(q.observed.NodeIPs)
}

// RunOne runs one probe now, without an observation of its pod. Like every probe, it is tried three times if it cannot
// run (kubelet: maxProbeRetries). The redactor removes secrets from the answer, because the answer may repeat values
// that this container or an earlier one got.
func (p *Prober) RunOne(ctx context.Context, probe *v1.Probe, target Target, redactor *redaction.Redactor) Result {
	return Runner{Exec: p.exec, Clean: redactor.Text}.Run(ctx, probe, target)
}

// exec runs the command of a probe.
func (p *Prober) exec(ctx context.Context, id string, command []string, timeout time.Duration) (ExecResult, error) {
	reply, err := p.client.RunCommand(ctx, id, command, timeout)
	return ExecResult{Stdout: reply.GetStdout(), Stderr: reply.GetStderr(), ExitCode: reply.GetExitCode()}, err
}
