package agent

import (
	"context"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/metrics"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// Status reports what the agent does and waits for.
func (a *Agent) Status(ctx context.Context) (*api.Status, error) {
	return call(ctx, a.inbox, a.status)
}

// Metrics returns the metrics of the agent.
func (a *Agent) Metrics() *metrics.Metrics { return a.metrics.Metrics }

func (a *Agent) status() *api.Status {
	s := &api.Status{
		APIVersion: model.APIVersion,
		Kind:       "AgentStatus",
		PID:        os.Getpid(),
		StartedAt:  a.started,
		Ready:      a.ready,
		Applied:    a.settings.Applied,
		Runtime: api.Runtime{
			Endpoint: a.world.Client.Endpoint.Address,
			Answers:  a.runtime.up,
			Since:    a.runtime.since,
			Error:    a.runtime.err,
		},
		Sources:  make([]api.Source, 0, len(a.reconciler.ledger.Order)),
		Pods:     []api.Pod{},
		Pressure: a.evictor.pressure(),
	}
	between := slices.Clone(a.reconciler.problems)
	for _, name := range a.reconciler.ledger.Order {
		u := a.reconciler.ledger.Updates[name]
		between = slices.DeleteFunc(between, func(p sources.Problem) bool { return slices.Contains(u.Problems, p) })
		s.Sources = append(s.Sources, api.Source{
			Name: name, Complete: u.Complete, Pods: len(u.Pods), Workloads: len(u.Workloads), Objects: len(u.Objects),
			Problems: problemsOf(u.Problems), Takeovers: problemsOf(a.reconciler.takeoversOf(name)),
		})
	}
	if a.settings.Workloads != nil {
		s.Workloads = a.settings.Workloads.States()
	}
	s.Problems = problemsOf(between)
	probes := a.probes.statuses()
	for _, w := range a.workers.States() {
		p := a.podStatus(&w)
		p.Probes = probes[p.UID]
		s.Pods = append(s.Pods, p)
	}
	return s
}

// statuses returns the results of all probes by pod.
func (b *probeRunner) statuses() map[types.UID][]api.Probe {
	all := map[types.UID][]api.Probe{}
	for _, v := range b.set.Verdicts() {
		all[v.Pod.UID] = append(all[v.Pod.UID], api.Probe{
			Container: v.Container, ContainerID: v.ContainerID, Type: v.Type,
			Result: v.Record.Result, Since: v.Since, LastProbeTime: v.LastRun, Message: v.Record.Message,
		})
	}
	return all
}

func (a *Agent) podStatus(w *podworkers.State) api.Pod {
	last := a.last[w.Ref.UID]
	p := api.Pod{
		PodRef:      w.Ref,
		CurrentPass: string(w.Kind),
		Deleting:    w.Ending,
		NextPass:    w.Due,
		LastPass:    last.at,
		Error:       last.failure,
		Waiting:     last.waiting,
		Rejection:   last.rejection,
		Eviction:    last.eviction,
	}
	d := a.reconciler.kept[w.Ref.UID]
	if d == nil {
		d = a.reconciler.ending[w.Ref.UID]
	}
	if d != nil {
		p.Source, p.File = d.Owner, d.Source
		if d.FromCluster() {
			p.Generation = d.Pod.Generation
		}
	}
	if w.WaitsFor != nil {
		p.BlockedBy = string(w.WaitsFor.UID)
	}
	return p
}

func problemsOf(list []sources.Problem) []api.Problem {
	problems := make([]api.Problem, 0, len(list))
	for _, p := range list {
		problems = append(problems, api.Problem{File: p.File, Text: p.Text, Since: p.Since})
	}
	return problems
}
