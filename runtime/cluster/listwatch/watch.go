package listwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

const (
	// watchSlack is how much longer a watch may last than the server was asked for. Later, the connection is lost or a
	// proxy holds it, and the watch would be silent forever.
	watchSlack = time.Minute
	// worksAfter is how long a watch without events must last until it counts as one that works.
	worksAfter = 10 * time.Second
	// initialMax limits the objects that a watch begins with, in bytes. It is the limit of a list's answer.
	initialMax = 256 << 20
	// objectMin is the size that each object counts as at least, in bytes. An empty object needs memory too.
	objectMin = 1 << 10
)

// watch begins a watch, which ends at the latest some time after the server should have ended it.
func (s *source) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	limit := patienceMax
	if o.TimeoutSeconds != nil {
		limit = time.Duration(*o.TimeoutSeconds)*time.Second + watchSlack
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	var begun watch.Interface
	err := s.Confirm(limited)
	if err == nil {
		begun, err = s.request(&o).Watch(limited)
	}
	if err == nil && limited.Err() != nil {
		err = limited.Err() // client-go returns an empty watch.
	}
	if err != nil {
		cancel()
		return nil, s.watchError(ctx, &o, err)
	}
	w := &checkedWatch{
		from: begun, end: cancel, events: make(chan watch.Event), stopped: make(chan struct{}),
		check:   func(e watch.Event) watch.Event { return s.checkEvent(ctx, o.ResourceVersion, e) },
		works:   func() { s.Works(ctx) },
		initial: initial{lists: o.SendInitialEvents != nil && *o.SendInitialEvents, max: s.initialMax},
	}
	go w.run()
	return w, nil
}

// watchError reports and returns the error of a watch that could not begin. The end of the history is not a failure,
// because the reflector lists again. It does so at once, so a server that reports that end for any request would get
// one request after the other.
func (s *source) watchError(ctx context.Context, o *metav1.ListOptions, err error) error {
	switch {
	case isUnsupported(o, err), isExpired(err) && o.ResourceVersion != "":
		return err
	case isExpired(err):
		err = errors.New(apierror.Text(err))
	}
	s.Report(ctx, "watch", err)
	pause(ctx, err)
	if o.SendInitialEvents == nil && mayBeRestored(err) {
		err = errors.New(apierror.Text(err)) // The reflector lists next, after a pause.
	}
	return err
}

// mayBeRestored reports whether the API server may be restored from a backup before the next try. For these errors, the
// reflector would only repeat the watch. A restored API server sends no events until its version reaches that of the
// watch, and reports no error; only a list shows that it is older. A list costs a busy API server more than a watch,
// but an API server that stops or starts answers with 429, too.
func mayBeRestored(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// isUnsupported reports whether an API server refuses to begin a watch with a list. The reflector then makes a list.
func isUnsupported(o *metav1.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && apierrors.IsInvalid(err)
}

// checkedWatch passes the events of a watch through a check. Its end ends the context of the watch.
type checkedWatch struct {
	from    watch.Interface
	end     context.CancelFunc
	events  chan watch.Event
	initial initial
	check   func(watch.Event) watch.Event
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
		if e = w.check(w.initial.limit(e)); e.Type != watch.Error {
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

// initial limits the objects that a watch begins with. The reflector collects them until a bookmark.
type initial struct {
	// lists is set until that bookmark. size and max are in bytes.
	lists     bool
	size, max int
}

// limit returns an event, or an error in its place if the objects are too large together.
func (i *initial) limit(e watch.Event) watch.Event {
	if !i.lists || e.Type == watch.Error {
		return e
	}
	if isEnd(e) {
		i.lists = false
		return e
	}
	size := 0
	if sized, is := e.Object.(interface{ Size() int }); is {
		size = sized.Size()
	}
	if i.size += max(size, objectMin); i.size <= i.max {
		return e
	}
	err := fmt.Errorf("the watch begins with a list that is larger than %d bytes", i.max)
	return watch.Event{Type: watch.Error, Object: new(apierrors.NewInternalError(err).Status())}
}

// isEnd reports whether an event is the bookmark at the end of the list that a watch begins with.
func isEnd(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	mark, err := meta.Accessor(e.Object)
	return err == nil && mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// checkEvent reports an error of a watch, and returns one for a list that is older than requested. The end of the
// history is not a failure: the reflector lists again.
func (s *source) checkEvent(ctx context.Context, atLeast string, e watch.Event) watch.Event {
	if isEnd(e) {
		e = checkEnd(atLeast, e)
	}
	if e.Type != watch.Error {
		return e
	}
	err := apierrors.FromObject(e.Object)
	if isExpired(err) && atLeast != "" {
		return e
	}
	s.Report(ctx, "watch", err)
	if isExpired(err) || mayBeRestored(err) {
		e.Object = new(apierrors.NewInternalError(err).Status())
	}
	return e
}

// checkEnd checks the bookmark at the end of a list that a watch begins with.
func checkEnd(atLeast string, e watch.Event) watch.Event {
	mark, err := meta.Accessor(e.Object)
	if err != nil {
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
