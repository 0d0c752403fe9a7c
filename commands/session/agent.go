package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/state"
)

// agentPatience is how long a command waits for the agent, which it needs only for what it says
// beside its result.
const agentPatience = 10 * time.Second

// AgentStatus is what the agent of the state directory does; nil if no agent runs. One that runs and does not answer ends no command:
// a note says so, and answered is false.
func (s *Session) AgentStatus(ctx context.Context) (status *api.Status, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	status, err := api.Client{Socket: s.Flags.Layout().AgentSocket()}.Status(ctx)
	if err != nil {
		if gone := (*api.NotRunningError)(nil); errors.As(err, &gone) {
			return nil, true
		}
		s.IO.NoteOnce("note: %s", s.ErrorText(err))
		return nil, false
	}
	return status, true
}

// AgentPods are the pods that the agent of the state directory keeps; none if no agent runs.
func (s *Session) AgentPods(ctx context.Context) map[types.UID]*api.Pod {
	status, _ := s.AgentStatus(ctx)
	if status == nil {
		return nil
	}
	pods := make(map[types.UID]*api.Pod, len(status.Pods))
	for i := range status.Pods {
		pods[status.Pods[i].UID] = &status.Pods[i]
	}
	return pods
}

// AgentKeepsApplied reports whether an agent runs that keeps what is applied by hand.
func (s *Session) AgentKeepsApplied(ctx context.Context) bool {
	status, _ := s.AgentStatus(ctx)
	return status != nil && status.Applied
}

// AgentKeeps reports whether an agent runs that keeps the pods of all these workloads.
func (s *Session) AgentKeeps(ctx context.Context, keys []state.ObjectKey) bool {
	status, _ := s.AgentStatus(ctx)
	if status == nil {
		return false
	}
	return !slices.ContainsFunc(keys, func(key state.ObjectKey) bool {
		return !slices.ContainsFunc(status.Workloads, func(w api.Workload) bool {
			return w.Namespace == key.Namespace && w.Kind == key.Kind && w.Name == key.Name
		})
	})
}

// AgentLooks lets a running agent take up the stored workloads as they are now, so that it makes no pass for what they were.
// It reports whether one runs.
func (s *Session) AgentLooks(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	err := api.Client{Socket: s.Flags.Layout().AgentSocket()}.Look(ctx)
	if gone := (*api.NotRunningError)(nil); errors.As(err, &gone) {
		return false
	}
	if err != nil {
		s.IO.NoteOnce("note: %s", s.ErrorText(err))
	}
	return true
}
