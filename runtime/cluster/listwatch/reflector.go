package listwatch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/sleep"
)

const (
	// Patience limits the first try of a list. A server that has not answered by then may never answer. The limit
	// doubles with each such try, up to patienceMax, so that a slow server has its time.
	Patience, patienceMax = 10 * time.Minute, 3 * time.Hour
)

// Settings select the objects to list and watch.
type Settings struct {
	// Client is the REST client of the group.
	Client cache.Getter
	// Resource is a plural name, such as "pods". Namespace is empty for all. Fields selects objects; nil selects all.
	Resource, Namespace string
	Fields              fields.Selector
	// Object and List are empty objects of the kinds that the API server must answer with.
	Object, List runtime.Object
	// WatchMin is the shortest time after which the API server is asked to end a watch. Zero means 5 minutes.
	WatchMin time.Duration
	// Backoff has the pauses between two tries.
	Backoff wait.Backoff
	// Confirm is called before each list and watch. Its error is that of the request, which is not made.
	Confirm func(ctx context.Context) error
	// Report is called with the result of each list, and with each error of a watch. what is "list" or "watch". It is
	// not called for the end of the history if the next request can succeed. Works is called when a watch works. Both
	// may be nil. The context is that of the request.
	Report func(ctx context.Context, what string, err error)
	Works  func(ctx context.Context)
}

// source lists and watches.
type source struct {
	Settings

	// initialMax limits the objects that a watch begins with, in bytes.
	initialMax int

	// mu guards patience, which is the limit of the next list.
	mu       sync.Mutex
	patience time.Duration
}

// New returns a reflector, which fills a store. It lists again if a watch cannot continue.
func New(s Settings, store cache.ReflectorStore) *cache.Reflector {
	return newSource(s).reflector(store)
}

func newSource(s Settings) *source {
	if s.Report == nil {
		s.Report = func(context.Context, string, error) {}
	}
	if s.Works == nil {
		s.Works = func(context.Context) {}
	}
	return &source{Settings: s, initialMax: initialMax, patience: Patience}
}

func (s *source) reflector(store cache.ReflectorStore) *cache.Reflector {
	lw := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	return cache.NewReflectorWithOptions(lw, s.Object, store, cache.ReflectorOptions{
		Name: s.Resource, Backoff: &s.Backoff, MinWatchTimeout: s.WatchMin,
	})
}

// request returns a request. client-go would repeat a refused one without a message.
func (s *source) request(o *metav1.ListOptions) *rest.Request {
	if s.Fields != nil {
		o.FieldSelector = s.Fields.String()
	}
	return s.Client.Get().Namespace(s.Namespace).Resource(s.Resource).
		VersionedParams(o, metav1.ParameterCodec).MaxRetries(0)
}

// list lists the objects. Each list must be as new as the API server's store, because an object that it lacks counts as
// deleted. A server with a cache that is behind, such as one of several after a restart of the agent, must not delete
// objects.
func (s *source) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = "" // Any version, also an old one. A kubelet accepts that.
	}
	limited, cancel := context.WithTimeout(ctx, s.patienceNow())
	defer cancel()
	var found runtime.Object
	err := s.Confirm(limited)
	if err == nil {
		found, err = s.request(&o).Do(limited).Get()
	}
	if err == nil {
		err = s.checkList(found, o.ResourceVersion)
	}
	s.adaptPatience(ctx, err)
	if isExpired(err) && o.ResourceVersion != "" {
		return nil, err // The reflector lists again at once, without a version.
	}
	s.Report(ctx, "list", err)
	if err != nil {
		pause(ctx, err)
		return nil, err
	}
	return found, nil
}

// patienceNow returns the limit of the next list.
func (s *source) patienceNow() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.patience
}

// adaptPatience sets the limit of the next list after the result of one.
func (s *source) adaptPatience(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.patience = Patience
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		s.patience = min(2*s.patience, patienceMax)
	}
}

// checkList returns an error if an answer is not a list of the right kind that is as new as requested. An answer
// without a version, such as a list that a proxy makes up, must not delete all objects.
func (s *source) checkList(found runtime.Object, atLeast string) error {
	list, err := meta.ListAccessor(found)
	switch {
	case err != nil || reflect.TypeOf(found) != reflect.TypeOf(s.List):
		return fmt.Errorf("the API server answers with %T instead of a list of %s", found, s.Resource)
	case list.GetResourceVersion() == "" || list.GetResourceVersion() == "0":
		return fmt.Errorf("the API server answers with a list of %s without a version", s.Resource)
	case isOlder(list.GetResourceVersion(), atLeast):
		return staleError(list.GetResourceVersion(), atLeast)
	}
	return nil
}

// isOlder reports whether a version is older than another. Without one, and for versions that cannot be compared, it is
// not.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// staleError returns the error of a list that is older than requested. The reflector then lists without a version,
// which the API server answers from its store. If that is older too, the API server was restored from a backup.
func staleError(version, atLeast string) *apierrors.StatusError {
	text := fmt.Sprintf("the list has the version %s, which is older than %s", version, atLeast)
	return apierrors.NewResourceExpired(text)
}

// isExpired reports whether a watch cannot continue, because the API server has dropped the history, or is older.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// pause waits as long as the server has asked for before the next try.
func pause(ctx context.Context, err error) {
	if delay := apierror.RetryAfter(err); delay > 0 {
		_ = sleep.For(ctx, delay) // the reflector checks the context
	}
}
