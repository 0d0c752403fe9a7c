package agent

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podsapi"
)

// Lister adds the status to pods.
type Lister interface {
	List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
}

// shownPods serves the pods of an agent with their status.
type shownPods struct {
	*loopState

	pods *podsapi.Server
	// changes counts the events that may have changed a status. mu guards listed, the last list, and listedAt, the
	// value of changes when that list was made.
	changes  atomic.Int64
	mu       sync.Mutex
	listed   *v1.PodList
	listedAt int64
}

func newShownPods(state *loopState, dropped func()) *shownPods {
	s := &shownPods{loopState: state}
	s.pods = podsapi.New(s, dropped)
	return s
}

// handleEvent notes that the status of a pod may have changed.
func (s *shownPods) handleEvent(_ context.Context, e *Event) {
	s.changes.Add(1)
	if e.Kind == Ended {
		s.pods.Ended(e.Pod.UID)
	} else {
		s.pods.Changed(e.Pod.UID)
	}
}

// List returns pods with their status.
func (s *shownPods) List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error) {
	return s.world.Lister.List(ctx, pods)
}

// Shown returns the pods that the agent keeps, in the applied version, and those that it is deleting. Of several pods
// with one name, those that stay are first.
func (s *shownPods) Shown(ctx context.Context) ([]*podspec.Desired, error) {
	return call(ctx, s.inbox, s.reconciler.shownPods)
}

// ShownPod is a shown pod, and what the agent may still do to it.
type ShownPod struct {
	// Desired is the version that was applied last, or else the wanted version.
	Desired *podspec.Desired
	// MayRun reports that a pass may start a container of the pod, whatever its status shows.
	MayRun bool
	// Reclaimed reports that the pod has ended because its source deletes it: no container runs, its volumes and its
	// cgroup are removed, and its status is final (kubelet: podIsFinished).
	Reclaimed bool
	// Leaving reports that the pod is being deleted.
	Leaving bool
}

// ShownPods returns the shown pods with their state. It does not wait for passes.
func (s *shownPods) ShownPods(ctx context.Context) ([]ShownPod, error) {
	return call(ctx, s.inbox, func() []ShownPod {
		var pods []ShownPod
		for _, d := range s.reconciler.shownPods() {
			uid := d.Pod.UID
			pods = append(pods, ShownPod{
				Desired: d, MayRun: s.workers.Starting(uid),
				Reclaimed: s.workers.Ended(uid), Leaving: s.workers.Ending(uid),
			})
		}
		return pods
	})
}

// SourcesRead reports whether every source but the API server has been read completely at least once. Until then, it is
// unknown whether a pod that is not shown is wanted.
func (s *shownPods) SourcesRead(ctx context.Context) (bool, error) {
	return call(ctx, s.inbox, s.reconciler.ledger.Complete)
}

// Pods lists the shown pods with their status. A pod that cannot be observed has the phase Unknown and the error as its
// message.
func (s *shownPods) Pods(ctx context.Context) (*v1.PodList, error) {
	shown, err := s.Shown(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := s.List(ctx, shown)
	if pods == nil && err != nil {
		return nil, err
	}
	list := &v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		Items:    make([]v1.Pod, 0, len(pods)),
	}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	return list, nil
}

// notePodsChanged notes that the set of shown pods may have changed.
func (s *shownPods) notePodsChanged() {
	s.changes.Add(1)
	s.pods.ListChanged()
}

// cachedPods is like Pods, but queries the runtime only if something has happened since the last list. Metrics are read
// every few seconds.
func (s *shownPods) cachedPods(ctx context.Context) (*v1.PodList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.changes.Load()
	if s.listed != nil && s.listedAt == now {
		return s.listed, nil
	}
	list, err := s.Pods(ctx)
	if s.listed = nil; err == nil {
		s.listed, s.listedAt = list, now
	}
	return list, err
}

// ServePods serves the kubelet's local Pods API on a socket until the context ends.
func (s *shownPods) ServePods(ctx context.Context, l net.Listener) error { return s.pods.Serve(ctx, l) }
