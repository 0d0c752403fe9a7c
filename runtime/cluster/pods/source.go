package pods

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// Settings configure a source. Every field but Registered, Changed and Listed is required.
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
	// Changed is called with each pod whose copy has changed, Listed after each list. They must not block.
	Changed func(types.UID)
	Listed  func()
	Log     *slog.Logger
}

// Source is the source of the pods of this node in the API server. Its methods may be called from any goroutine.
type Source struct {
	settings Settings

	// mu guards the copies and failure, the last error that was logged.
	mu      sync.Mutex
	copies  *copies
	failure string
	// news holds a value if the copies have changed since the last update.
	news chan struct{}
}

// New returns a source. Run starts it.
func New(s Settings) *Source {
	return &Source{settings: s, copies: newCopies(s.Load, s.Known), news: make(chan struct{}, 1)}
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

// Listed reports whether the pods have been listed. Until then, a missing copy has no meaning.
func (s *Source) Listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies.listed
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

// reflector returns the list and watch of the pods. It lists again if a watch cannot continue.
func (s *Source) reflector() *cache.Reflector {
	selector := fields.OneTermEqualSelector("spec.nodeName", s.settings.Node)
	lw := cache.NewListWatchFromClient(s.settings.Client, "pods", metav1.NamespaceAll, selector)
	list, begin := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		found, err := list(ctx, o)
		s.logFailure(ctx, err)
		return found, err
	}
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		begun, err := begin(ctx, o)
		s.logFailure(ctx, err)
		return begun, err
	}
	return cache.NewReflectorWithOptions(lw, &v1.Pod{}, store{s}, cache.ReflectorOptions{
		Name: "pods", Backoff: &wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 4, Factor: 2, Jitter: 1},
	})
}

// firstPause and longestPause are the pauses between two tries while the API server does not respond. A kubelet waits
// for up to a minute, so that a node may see the API server late. A small cluster has few nodes that try.
const firstPause, longestPause = 800 * time.Millisecond, 5 * time.Second

// logFailure logs an error of the list or the watch. It logs the same error once.
func (s *Source) logFailure(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := err.Error(); text != s.failure {
		s.failure = text
		s.settings.Log.Warn("cannot watch the pods of this node in the API server", "error", text)
	}
}

// change applies a change to the copies and requests an update.
func (s *Source) change(do func(*copies) (affected []types.UID)) {
	s.mu.Lock()
	affected := do(s.copies)
	s.failure = ""
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	if s.settings.Changed == nil {
		return
	}
	for _, uid := range affected {
		s.settings.Changed(uid)
	}
}
