package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/state"
)

// agentPatience is the timeout for calls to the agent. Commands need the agent only for additional notes.
const agentPatience = 10 * time.Second

// Agent returns a client for the agent of the state directory.
func (s *Session) Agent() api.Client { return api.Client{Socket: s.Flags.Layout().AgentSocket()} }

// AgentStatus returns the status of the agent of the state directory; nil if no agent runs. If it runs but does not
// answer, answered is false, and a note is printed instead of an error.
func (s *Session) AgentStatus(ctx context.Context) (status *api.Status, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	status, err := s.Agent().Status(ctx)
	if err != nil {
		if gone := (*api.NotRunningError)(nil); errors.As(err, &gone) {
			return nil, true
		}
		s.IO.NoteOnce("note: %s", s.ErrorText(err))
		return nil, false
	}
	return status, true
}

// AgentPods returns the pods that the agent of the state directory keeps; none if no agent runs.
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

// Newest returns pods with the newest versions of those that the API server owns. The stored version of such a pod is
// the one that was applied last. Without an agent, or if the API server cannot be reached, the stored version stays.
func Newest(ctx context.Context, s *Session, pods []*podspec.Desired) []*podspec.Desired {
	stored := func(d *podspec.Desired) bool { return d.Stored && d.FromCluster() }
	if !slices.ContainsFunc(pods, stored) {
		return pods
	}
	kept := s.AgentPods(ctx)
	outdated := func(d *podspec.Desired) bool {
		p := kept[d.Pod.UID]
		return stored(d) && p != nil && p.Generation > d.Pod.Generation
	}
	if !slices.ContainsFunc(pods, outdated) {
		return pods
	}
	remote, err := s.Agent().ClusterPods(ctx)
	if err != nil {
		s.IO.NoteOnce("note: %s", s.ErrorText(err))
		return pods
	}
	newest := slices.Clone(pods)
	for i, d := range pods {
		at := slices.IndexFunc(remote.Items, func(pod v1.Pod) bool { return pod.UID == d.Pod.UID })
		if at < 0 || !outdated(d) {
			continue
		}
		if loaded, err := load.FromAPI(&remote.Items[at]); err == nil {
			newest[i] = loaded
		} else {
			s.IO.NoteOnce("note: %s", s.ErrorText(err))
		}
	}
	return newest
}

// AgentKeepsApplied reports whether an agent runs that keeps pods applied by hand.
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

// NotifyAgent notifies a running agent that the stored workloads have changed, so that it makes no pass for their old
// state. It reports whether an agent runs.
func (s *Session) NotifyAgent(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	err := s.Agent().ReadWorkloads(ctx)
	if gone := (*api.NotRunningError)(nil); errors.As(err, &gone) {
		return false
	}
	if err != nil {
		s.IO.NoteOnce("note: %s", s.ErrorText(err))
	}
	return true
}

// apiPodsFor is how long the agent's answer about pods in the API server is used.
const apiPodsFor = time.Second

// apiPods is the last answer of the agent about pods of the API server.
type apiPods struct {
	mu   sync.Mutex
	at   time.Time
	pods map[types.UID]*api.Pod
}

// conditions returns the conditions of a pod in the API. Only an agent that watches the API server knows them.
func (s *Session) conditions(ctx context.Context, uid types.UID) []v1.PodCondition {
	r := &s.known
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.at.IsZero() || now.Sub(r.at) > apiPodsFor {
		r.pods, r.at = s.AgentPods(ctx), time.Now()
	}
	if p := r.pods[uid]; p != nil {
		return p.Conditions
	}
	return nil
}
