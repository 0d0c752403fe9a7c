package controllers

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/controller"
)

// States returns the kept workloads and what each waits for.
func (s *Source) States() []api.Workload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.states)
}

func stateOf(r *controller.Record, x *controller.Expanded, err error) api.Workload {
	key := r.Key()
	w := api.Workload{
		Kind:      key.Kind,
		Namespace: key.Namespace,
		Name:      key.Name,
		Source:    r.Workload.Owner,
		File:      r.Workload.Source,
		Pods:      len(x.Pods),
	}
	if err == nil {
		err = x.UnknownErr()
	}
	if err != nil {
		w.Error = err.Error()
	}
	for _, one := range x.Waits {
		w.Waiting = append(w.Waiting, fmt.Sprintf("pod %s: %s", one.Pod, one.Reason))
	}
	if x.Unfit != "" {
		w.Waiting = append(w.Waiting, x.Unfit)
	}
	return w
}
