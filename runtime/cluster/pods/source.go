package pods

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/listwatch"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// Settings configure a source. Every field but Registered, Confirm, Changed and Listed is required.
type Settings struct {
	// Name is the name of the source in messages and records.
	Name string
	// Client lists and watches pods. It is the REST client of core/v1.
	Client cache.Getter
	// Node is the name of this node.
	Node string
	// Load converts a pod of the API server.
	Load func(*v1.Pod) (*podspec.Desired, error)
	// Known reports whether a pod has a record on this machine. A pod without one that has already ended never runs.
	Known func(types.UID) bool
	// Registered is closed when the Node is registered. The source reads nothing before. If nil, it does not wait.
	Registered <-chan struct{}
	// Confirm is called before each list and watch. An error keeps the pods as they are.
	Confirm func(ctx context.Context) error
	// Changed is called with each pod whose copy has changed, Listed after each list. They must not block.
	Changed func(types.UID)
	Listed  func()
	Log     *slog.Logger
}

// Source is the source of the pods of this node in the API server. Its methods may be called from any goroutine.
type Source struct {
	settings Settings
	failures listwatch.Log

	// mu guards the following fields.
	mu     sync.Mutex
	copies *copies
	// listedAt is when the pods were listed last, and receivedAt when the API server sent a list, a change or a
	// bookmark.
	listedAt, receivedAt time.Time
	// news holds a value if the copies have changed since the last update.
	news chan struct{}
}

// New returns a source. Run starts it.
func New(s Settings) *Source {
	return &Source{
		settings: s, copies: newCopies(s.Node, s.Load, s.Known), news: make(chan struct{}, 1),
	}
}

// Name returns the name of the source.
func (s *Source) Name() string { return s.settings.Name }

// Rules returns the rules of the API server: UIDs identify pods, and a pod that is gone ends at once.
func (s *Source) Rules() sources.Rules { return sources.Rules{UIDs: true} }

// Ended does nothing. A pod leaves the API server after its final status has been sent.
func (s *Source) Ended(model.PodRef) {}

// Get returns the newest copy of a pod, which must not be changed. It returns nil if the API server has no such pod on
// this node.
func (s *Source) Get(uid types.UID) *v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.copies.byUID[uid]; e != nil {
		return e.pod
	}
	return nil
}

// All returns the copies of all pods of this node, which must not be changed.
func (s *Source) All() []*v1.Pod { return s.which(func(*entry) bool { return true }) }

// which returns the copies of the wanted pods.
func (s *Source) which(wanted func(*entry) bool) (pods []*v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.copies.sorted() {
		if wanted(e) {
			pods = append(pods, e.pod)
		}
	}
	return pods
}

// List requests the pods of this node from the API server. It changes no copy.
func (s *Source) List(ctx context.Context) ([]*v1.Pod, error) {
	request := s.settings.Client.Get().Resource("pods").
		Param("fieldSelector", fields.OneTermEqualSelector("spec.nodeName", s.settings.Node).String())
	list, err := apiclient.Do[v1.PodList](ctx, request)
	if err != nil {
		return nil, err
	}
	var pods []*v1.Pod
	for i := range list.Items {
		// A server that ignores the selector returns pods of other nodes.
		if pod := &list.Items[i]; pod.Spec.NodeName == s.settings.Node {
			pod.ManagedFields = nil
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// Mirrors returns the mirror pods of this node, which must not be changed. The source does not provide them.
func (s *Source) Mirrors() []*v1.Pod {
	return s.which(func(e *entry) bool { return podspec.IsMirror(e.pod) })
}

// Finished returns the pods that had ended before this machine had a record of them, which must not be changed. The
// source does not provide them.
func (s *Source) Finished() []*v1.Pod {
	return s.which(func(e *entry) bool { return e.isHidden() && !podspec.IsMirror(e.pod) })
}

// Mirror returns the mirror pod with a name, which must not be changed; nil if there is none.
func (s *Source) Mirror(name types.NamespacedName) *v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.copies.byName[name]; e != nil && podspec.IsMirror(e.pod) {
		return e.pod
	}
	return nil
}

// Rejected returns the pods that podctl cannot use and that have no record on this machine. They must never run.
func (s *Source) Rejected() []Rejection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies.rejected()
}

// NewlyRejected returns the rejection of a pod the first time; nil later, and if the pod is not rejected.
func (s *Source) NewlyRejected(uid types.UID) *Rejection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies.announce(uid)
}

// Listed reports whether the pods have been listed. Until then, a missing copy has no meaning.
func (s *Source) Listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies.listed
}

// Failure returns why the pods cannot be listed and watched now. It is empty if they can, and before the first answer.
func (s *Source) Failure() string { return s.failures.Last() }

// ListedAt returns when the pods were listed last; zero before the first list.
func (s *Source) ListedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listedAt
}

// AsOf returns the time of the copies: when the API server sent a list, a change or a bookmark last. It is zero before
// the first list.
func (s *Source) AsOf() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receivedAt
}

// Run lists and watches the pods until the context ends. Changes that arrive while notify runs are reported together.
// The watch delivers each change, so a request to read again is answered at once.
func (s *Source) Run(ctx context.Context, reread <-chan chan struct{}, notify func(sources.Update)) {
	var reflector sync.WaitGroup
	defer reflector.Wait()
	reflector.Go(func() {
		if s.settings.Registered != nil {
			select {
			case <-s.settings.Registered:
			case <-ctx.Done():
				return
			}
		}
		s.reflector().RunWithContext(ctx)
	})
	for {
		select {
		case <-ctx.Done():
			return
		case done := <-reread:
			close(done)
		case <-s.news:
			notify(s.update())
		}
	}
}

func (s *Source) update() sources.Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies.update(s.settings.Name)
}

// change applies a change to the copies and requests an update.
func (s *Source) change(do func(*copies) (affected []types.UID)) {
	s.mu.Lock()
	affected := do(s.copies)
	s.receivedAt = time.Now()
	s.mu.Unlock()
	sleep.Wake(s.news)
	if s.settings.Changed == nil {
		return
	}
	for _, uid := range affected {
		s.settings.Changed(uid)
	}
}
