package agent

import (
	"context"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/probers"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
)

// Prober runs probes and records their results.
type Prober interface {
	RunOne(ctx context.Context, probe *v1.Probe, target probe.Target, redactor *redaction.Redactor) probe.Result
	RecordReports(ctx context.Context, now time.Time, ref model.PodRef, reports []probe.Report) error
}

// probeRunner runs the probes of running pods. Only the loop uses it.
type probeRunner struct {
	*loopState

	set  *probers.Set
	pods map[types.UID]probedPod
	// goroutines are the goroutines that run probes and write results, in parallel to the loop.
	goroutines sync.WaitGroup
}

func newProbeRunner(s *loopState) *probeRunner {
	return &probeRunner{loopState: s, set: probers.New(s.now(), s.settings.Random), pods: map[types.UID]probedPod{}}
}

// probedPod is the state of a pod whose probes are run.
type probedPod struct {
	seen     probers.Observation
	redactor *redaction.Redactor
}

// sync updates the probes from the observations and steps of a pass.
func (b *probeRunner) sync(ctx context.Context, p *passResult) {
	uid := p.pass.Ref.UID
	if p.pass.Kind != podworkers.Sync || p.outcome == nil || p.outcome.Input == nil {
		return
	}
	if !probe.HasAny(p.pod().Pod) {
		b.forget(uid)
		return
	}
	one := probedPod{seen: probers.Observation{Desired: p.pod(), Running: running(p.outcome)}, redactor: p.redactor}
	b.pods[uid] = one
	b.writeReports(ctx, p.pass.Ref, b.set.Sync(b.now(), one.seen), func() {})
	for i := range one.seen.Running {
		r := &one.seen.Running[i]
		if r.Records[model.Readiness].Result != model.ProbeSuccess {
			b.set.MakeDue(b.now(), uid, r.Name)
		}
	}
}

// limitToReadiness limits the probes of a pod that is being deleted to readiness.
func (b *probeRunner) limitToReadiness(uid types.UID) {
	if one, known := b.pods[uid]; known {
		one.seen.Deleting = true
		b.set.Sync(b.now(), one.seen)
	}
}

// forget drops the probes of a pod that is gone.
func (b *probeRunner) forget(uid types.UID) {
	if one, known := b.pods[uid]; known {
		b.metrics.Forget(model.RefOf(one.seen.Desired.Pod))
	}
	delete(b.pods, uid)
	b.set.Forget(uid)
}

// startDue starts the probes that are due in other goroutines, and returns when the next one is due.
func (b *probeRunner) startDue(ctx context.Context) time.Time {
	due, wake := b.set.Next(b.now())
	for i := range due {
		run, redactor := due[i], b.pods[due[i].Pod.UID].redactor
		b.goroutines.Go(func() {
			began := b.now()
			result := b.world.Prober.RunOne(ctx, run.Probe, run.Target, redactor)
			took := b.now().Sub(began)
			b.inbox.post(ctx, func() {
				b.count(&run, result, took)
				b.handleResult(ctx, run, result)
			})
		})
	}
	return wake
}

// count adds a result to the metrics, unless the pod is gone: its metrics would stay forever.
func (b *probeRunner) count(run *probers.DueProbe, result probe.Result, took time.Duration) {
	if _, known := b.pods[run.Pod.UID]; known {
		b.metrics.Probed(run.Pod, run.Target.Container.Name, run.Type, result.Judged(), took)
	}
}

// handleResult handles the result of a probe.
func (b *probeRunner) handleResult(ctx context.Context, run probers.DueProbe, result probe.Result) {
	report := b.set.Done(b.now(), run, result)
	after := func() { b.nextIsValid = true }
	if report.NeedsPass {
		after = func() { b.wakePod(run.Pod.UID) }
	}
	if report.NeedsWrite() {
		b.writeReports(ctx, run.Pod, []probe.Report{report}, after)
	} else {
		after()
	}
}

// writeReports writes reports in another goroutine. It calls then after the write, because a pass reads the written
// results.
func (b *probeRunner) writeReports(ctx context.Context, ref model.PodRef, reports []probe.Report, then func()) {
	if len(reports) == 0 {
		return
	}
	now := b.now()
	b.goroutines.Go(func() {
		err := b.world.Prober.RecordReports(ctx, now, ref, reports)
		b.inbox.post(ctx, func() {
			if err != nil {
				b.log.Error("cannot record the results of probes", "pod", ref.String(), "error", err.Error())
			}
			b.notify(ctx, &Event{Kind: Probed, Pod: ref})
			then()
		})
	})
}

// running returns the containers of a pod that run after a pass. It leaves out containers that the pass has started:
// the next pass observes them.
func running(o *executor.Outcome) []probers.Running {
	stopped := map[string]bool{}
	for i := range o.Plan.Steps {
		if s := &o.Plan.Steps[i]; s.Kind == plan.StopContainer {
			stopped[s.ContainerID] = true
		}
	}
	var list []probers.Running
	seen := &o.Input.Observed
	for i := range seen.Containers {
		c := &seen.Containers[i]
		newest := seen.Newest(func(other *model.Container) bool { return other.Name == c.Name })
		if c.State != model.Running || c.Starting || stopped[c.ID] || newest.ID != c.ID {
			continue
		}
		list = append(list, probers.Running{
			Name: c.Name, ID: c.ID, Address: seen.SandboxOf(c.SandboxID).Address(seen.NodeIPs), StartedAt: c.StartedAt,
			Records: maps.Clone(seen.Memory.Probes[c.ID]),
		})
	}
	return list
}
