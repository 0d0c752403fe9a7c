package agent

import (
	"context"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/probers"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
)

// Prober asks probes and writes down what they say.
type Prober interface {
	AskOne(ctx context.Context, probe *v1.Probe, target probe.Target, redactor *redaction.Redactor) probe.Result
	Keep(ctx context.Context, now time.Time, ref model.PodRef, answers []probe.Answer) error
}

// probed is what the agent knows of a pod whose probes are asked.
type probed struct {
	seen     probers.Seen
	redactor *redaction.Redactor
}

// syncProbes lets the probes follow what a pass has seen and done.
func (a *Agent) syncProbes(p *passed) {
	uid := p.pass.Ref.UID
	if p.pass.Kind == podworkers.Terminate || p.outcome == nil || p.outcome.Observed == nil || !hasProbes(p.pass.Pod) {
		return
	}
	one := probed{seen: probers.Seen{Desired: p.pass.Pod, Running: running(p.outcome)}, redactor: p.redactor}
	a.probed[uid] = one
	a.keep(p.pass.Ref, a.probes.Sync(a.settings.Now(), one.seen), func() {})
	for i := range one.seen.Running {
		r := &one.seen.Running[i]
		if r.Records[model.Readiness].Result != model.ProbeSuccess {
			a.probes.AskNow(a.settings.Now(), uid, r.Name)
		}
	}
}

// endProbes lets a pod that is being deleted have its readiness asked only.
func (a *Agent) endProbes(uid types.UID) {
	if one, known := a.probed[uid]; known {
		one.seen.Deleting = true
		a.probes.Sync(a.settings.Now(), one.seen)
	}
}

// forgetProbes drops the probes of a pod that is gone.
func (a *Agent) forgetProbes(uid types.UID) {
	if one, known := a.probed[uid]; known {
		a.metrics.Forget(model.RefOf(one.seen.Desired.Pod))
	}
	delete(a.probed, uid)
	a.probes.Forget(uid)
}

// askProbes asks the probes that are due, beside the loop, and returns when the next one is.
func (a *Agent) askProbes() time.Time {
	due, wake := a.probes.Next(a.settings.Now())
	for i := range due {
		ask, redactor := due[i], a.probed[due[i].Pod.UID].redactor
		go func() {
			began := a.settings.Now()
			result := a.prober.AskOne(a.ctx, ask.Probe, ask.Target, redactor)
			a.metrics.Probed(ask.Pod, ask.Target.Container.Name, ask.Type, result.Judged(), a.settings.Now().Sub(began))
			a.post(a.ctx, func() { a.answered(ask, result) })
		}()
	}
	return wake
}

// answered takes the answer of a probe.
func (a *Agent) answered(ask probers.Ask, result probe.Result) {
	change := a.probes.Done(a.settings.Now(), ask, result)
	look := func() {}
	if change.Look {
		look = func() { a.workers.Wake(a.settings.Now(), ask.Pod.UID) }
	}
	if !change.Keep {
		look()
		return
	}
	a.keep(ask.Pod, []probe.Answer{change.Answer}, look)
}

// keep writes answers down, beside the loop. What follows from them is done after that, not before:
// a pass reads what is written.
func (a *Agent) keep(ref model.PodRef, answers []probe.Answer, then func()) {
	if len(answers) == 0 {
		return
	}
	now := a.settings.Now()
	go func() {
		err := a.prober.Keep(a.ctx, now, ref, answers)
		a.post(a.ctx, func() {
			if err != nil {
				a.log.Error("the answers of probes are not kept", "pod", ref.String(), "error", err.Error())
			}
			then()
		})
	}()
}

// running are the containers of a pod that run after a pass, without those that it has started: the
// pass that follows has seen them.
func running(o *executor.Outcome) []probers.Running {
	stopped := map[string]bool{}
	for i := range o.Plan.Steps {
		if s := &o.Plan.Steps[i]; s.Kind == plan.StopContainer {
			stopped[s.ContainerID] = true
		}
	}
	var list []probers.Running
	for i := range o.Observed.Containers {
		c := &o.Observed.Containers[i]
		newest := o.Observed.Newest(func(other *model.Container) bool { return other.Name == c.Name })
		if c.State != model.Running || stopped[c.ID] || newest.ID != c.ID {
			continue
		}
		list = append(list, probers.Running{
			Name: c.Name, ID: c.ID, Address: o.Observed.SandboxOf(c.SandboxID).Address(o.Observed.NodeIPs), StartedAt: c.StartedAt,
			Records: maps.Clone(o.Observed.Memory.Probes[c.ID]),
		})
	}
	return list
}

func hasProbes(d *podspec.Desired) bool {
	for _, ref := range podspec.Containers(d.Pod) {
		for _, t := range model.ProbeTypes() {
			if model.ProbeOf(ref.Container, t) != nil {
				return true
			}
		}
	}
	return false
}
