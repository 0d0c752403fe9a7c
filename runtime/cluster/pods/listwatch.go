package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

const (
	// firstPause and longestPause are the pauses between two tries while the API server does not respond. A kubelet
	// waits for up to a minute, so that a node may see the API server late. A small cluster has few nodes that try.
	firstPause, longestPause = 800 * time.Millisecond, 5 * time.Second
	// delayMax limits the delay that a server can ask for before the next try.
	delayMax = 30 * time.Second
	// listPatience limits the first try of a list. A server that has not answered by then may never answer. The limit
	// doubles with each such try, up to patienceMax, so that a slow server has its time.
	listPatience, patienceMax = 10 * time.Minute, 3 * time.Hour
	// watchSlack is how much longer a watch may last than the server was asked for. Later, the connection is lost or a
	// proxy holds it, and the watch would be silent forever.
	watchSlack = time.Minute
	// worksAfter is how long a watch without events must last until it counts as one that works.
	worksAfter = 10 * time.Second
)

// reflector returns the list and watch of the pods. It lists again if a watch cannot continue.
func (s *Source) reflector() *cache.Reflector {
	lw := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	return cache.NewReflectorWithOptions(lw, &v1.Pod{}, store{s}, cache.ReflectorOptions{
		Name: "pods", Backoff: &wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 4, Factor: 2, Jitter: 1},
	})
}

// request returns a request for the pods of this node. client-go would repeat a refused one without a message.
func (s *Source) request(o *metav1.ListOptions) *rest.Request {
	o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", s.settings.Node).String()
	return s.settings.Client.Get().Resource("pods").VersionedParams(o, metav1.ParameterCodec).MaxRetries(0)
}

// list lists the pods. Each list must be as new as the API server's store, because a pod that it lacks ends. A server
// with a cache that is behind, such as one of several after a restart of the agent, must not end pods.
func (s *Source) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = "" // Any version, also an old one. A kubelet accepts that.
	}
	limited, cancel := context.WithTimeout(ctx, s.patienceNow())
	defer cancel()
	found, err := s.request(&o).Do(limited).Get()
	if err == nil {
		err = checkList(found, o.ResourceVersion)
	}
	s.adaptPatience(ctx, err)
	if isExpired(err) && o.ResourceVersion != "" {
		return nil, err // The reflector lists again at once, without a version.
	}
	s.report(ctx, "list", err)
	if err != nil {
		waitFor(ctx, err)
		return nil, err
	}
	return found, nil
}

// patienceNow returns the limit of the next list.
func (s *Source) patienceNow() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.patience
}

// adaptPatience sets the limit of the next list after the result of one.
func (s *Source) adaptPatience(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.patience = listPatience
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		s.patience = min(2*s.patience, patienceMax)
	}
}

// checkList returns an error if an answer is not a list of pods that is as new as requested. An answer without a
// version, such as a list that a proxy makes up, must not end all pods.
func checkList(found runtime.Object, atLeast string) error {
	list, is := found.(*v1.PodList)
	switch {
	case !is:
		return fmt.Errorf("the API server answers with %T instead of a list of pods", found)
	case list.ResourceVersion == "" || list.ResourceVersion == "0":
		return errors.New("the API server answers with a list of pods without a version")
	case isOlder(list.ResourceVersion, atLeast):
		return staleError(list.ResourceVersion, atLeast)
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

// watch begins a watch, which ends at the latest some time after the server should have ended it.
func (s *Source) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	limit := patienceMax
	if o.TimeoutSeconds != nil {
		limit = time.Duration(*o.TimeoutSeconds)*time.Second + watchSlack
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	begun, err := s.request(&o).Watch(limited)
	if err == nil && limited.Err() != nil {
		err = limited.Err() // client-go returns an empty watch.
	}
	if err != nil {
		cancel()
		return nil, s.watchError(ctx, &o, err)
	}
	w := &checkedWatch{
		from: begun, end: cancel, events: make(chan watch.Event), stopped: make(chan struct{}),
		check: func(e watch.Event) watch.Event { return s.checkEvent(ctx, o.ResourceVersion, e) },
		works: func() { s.recovered(ctx) },
	}
	go w.run()
	return w, nil
}

// watchError reports and returns the error of a watch that could not begin. The end of the history is not a failure,
// because the reflector lists again. It does so at once, so a server that reports that end for any request would get
// one request after the other.
func (s *Source) watchError(ctx context.Context, o *metav1.ListOptions, err error) error {
	switch {
	case isUnsupported(o, err), isExpired(err) && o.ResourceVersion != "":
		return err
	case isExpired(err):
		err = errors.New(apierror.Text(err))
	}
	s.report(ctx, "watch", err)
	waitFor(ctx, err)
	return err
}

// isUnsupported reports whether an API server refuses to begin a watch with a list. The reflector then makes a list.
func isUnsupported(o *metav1.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && apierrors.IsInvalid(err)
}

// checkedWatch passes the events of a watch through a check. Its end ends the context of the watch.
type checkedWatch struct {
	from   watch.Interface
	end    context.CancelFunc
	events chan watch.Event
	check  func(watch.Event) watch.Event
	// works is called after the first event that is not an error, or after some time without one.
	works   func()
	once    sync.Once
	stopped chan struct{}
}

func (w *checkedWatch) run() {
	defer close(w.events)
	defer w.end()
	works := sync.OnceFunc(w.works)
	timer := time.AfterFunc(worksAfter, works)
	defer timer.Stop()
	for e := range w.from.ResultChan() {
		if e = w.check(e); e.Type != watch.Error {
			works()
		}
		select {
		case w.events <- e:
		case <-w.stopped:
			return
		}
	}
}

// ResultChan returns the checked events.
func (w *checkedWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *checkedWatch) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.from.Stop()
}

// checkEvent reports an error of a watch, and returns one for a list that is older than requested. The end of the
// history is not a failure: the reflector lists again.
func (s *Source) checkEvent(ctx context.Context, atLeast string, e watch.Event) watch.Event {
	if e.Type == watch.Bookmark {
		e = checkBookmark(atLeast, e)
	}
	if e.Type != watch.Error {
		return e
	}
	err := apierrors.FromObject(e.Object)
	if isExpired(err) && atLeast != "" {
		return e
	}
	s.report(ctx, "watch", err)
	if isExpired(err) {
		e.Object = new(apierrors.NewInternalError(err).Status())
	}
	return e
}

// isExpired reports whether a watch cannot continue, because the API server has dropped the history, or is older.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// checkBookmark checks the bookmark at the end of a list that a watch begins with.
func checkBookmark(atLeast string, e watch.Event) watch.Event {
	mark, err := meta.Accessor(e.Object)
	if err != nil || mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return e
	}
	var refused *apierrors.StatusError
	switch version := mark.GetResourceVersion(); {
	case version == "" || version == "0":
		refused = apierrors.NewInternalError(errors.New("the watch begins with a list without a version"))
	case isOlder(version, atLeast):
		refused = staleError(version, atLeast)
	default:
		return e
	}
	return watch.Event{Type: watch.Error, Object: new(refused.Status())}
}

// report logs an error of the list or the watch, once until another one or a success.
func (s *Source) report(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	text := apierror.Text(err)
	s.mu.Lock()
	before := s.failures[what]
	s.failures[what], s.fails = text, s.fails || text != ""
	s.mu.Unlock()
	if text != "" && text != before {
		s.settings.Log.Warn("cannot "+what+" the pods of this node in the API server; pods keep running", "error", text)
	}
}

// recovered logs that the watch works again after a failure.
func (s *Source) recovered(ctx context.Context) {
	s.mu.Lock()
	failed := s.fails
	s.fails = false
	clear(s.failures)
	s.mu.Unlock()
	if failed && ctx.Err() == nil {
		s.settings.Log.Info("the watch of the pods of this node in the API server works again")
	}
}

// waitFor waits as long as the server has asked for before the next try.
func waitFor(ctx context.Context, err error) {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !asked || seconds <= 0 {
		return
	}
	timer := time.NewTimer(min(time.Duration(seconds)*time.Second, delayMax))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
