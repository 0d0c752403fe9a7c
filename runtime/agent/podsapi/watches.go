package podsapi

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/podctl/podctl/podspec"
)

// queued is how much a watch may lie behind (kubelet: WatchPods).
const queued = 100

// watches are those who watch. One goroutine looks at pods for all of them, and while there are
// none it sleeps.
type watches struct {
	agent   Agent
	dropped func()
	// news wakes the goroutine.
	news chan struct{}

	mu sync.Mutex
	// all maps watches to whether they have the list of all pods.
	all map[*watch]bool
	// changed are the pods to look at, ended those that are gone, although another with the same
	// uid may be there already.
	changed, ended map[types.UID]bool

	// told is what was told of each pod last. Only the goroutine touches it.
	told map[types.UID]told
}

// watch is one who watches.
type watch struct {
	// queue has events in their order. It is closed when the watch ends, because of end.
	queue chan []*podsv1alpha1.WatchPodsEvent
	end   error
}

// told is what was told of one pod.
type told struct {
	name types.NamespacedName
	pod  []byte
}

// Changed says that the status of a pod may have changed.
func (s *Server) Changed(uid types.UID) {
	s.watches.note(func(w *watches) { w.changed[uid] = true })
}

// Ended says that a pod is gone.
func (s *Server) Ended(uid types.UID) {
	s.watches.note(func(w *watches) { w.changed[uid], w.ended[uid] = true, true })
}

// Look says that other pods may be shown now.
func (s *Server) Look() { s.watches.note(func(*watches) {}) }

// note remembers something for those who watch; if nobody does there is nothing to remember.
func (w *watches) note(remember func(*watches)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) > 0 {
		remember(w)
		w.wake()
	}
}

func (w *watches) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// join begins a watch.
func (w *watches) join() *watch {
	one := &watch{queue: make(chan []*podsv1alpha1.WatchPodsEvent, queued)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		w.all, w.changed, w.ended = map[*watch]bool{}, map[types.UID]bool{}, map[types.UID]bool{}
	}
	w.all[one] = false
	w.wake()
	return one
}

// leave ends a watch that nobody reads any more.
func (w *watches) leave(one *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, one)
	w.wake()
}

// run tells what is new until the context ends.
func (w *watches) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.news:
			w.turn(ctx)
		}
	}
}

// turn looks at what may have changed and tells it.
func (w *watches) turn(ctx context.Context) {
	w.mu.Lock()
	fresh, old := false, false
	for _, has := range w.all {
		fresh, old = fresh || !has, old || has
	}
	changed, ended := w.changed, w.ended
	w.changed, w.ended = map[types.UID]bool{}, map[types.UID]bool{}
	w.mu.Unlock()
	if !old {
		w.told = map[types.UID]told{}
	}
	if !fresh && !old {
		return
	}
	events, err := w.look(ctx, ended, func(uid types.UID) bool { return fresh || changed[uid] })
	var list []*podsv1alpha1.WatchPodsEvent
	if fresh && err == nil {
		list = w.list()
	}
	w.tell(events, list, err)
	if err != nil {
		// The next news has them looked at.
		w.mu.Lock()
		maps.Copy(w.changed, changed)
		w.mu.Unlock()
	}
}

// look finds out what has happened to the pods that may have changed, and to those that are new.
func (w *watches) look(ctx context.Context, ended map[types.UID]bool, changed func(types.UID) bool) (events []*podsv1alpha1.WatchPodsEvent, err error) {
	for _, uid := range slices.Sorted(maps.Keys(ended)) {
		events = append(events, w.gone(uid)...)
	}
	shown, err := w.agent.Shown(ctx)
	if err != nil {
		return events, unavailable(err)
	}
	there := map[types.UID]bool{}
	var look []*podspec.Desired
	for _, d := range shown {
		there[d.Pod.UID] = true
		if _, known := w.told[d.Pod.UID]; !known || changed(d.Pod.UID) {
			look = append(look, d)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.told)) {
		if !there[uid] {
			events = append(events, w.gone(uid)...)
		}
	}
	pods, err := encode(ctx, w.agent, look)
	for i, pod := range pods {
		events = append(events, w.seen(look[i].Pod, pod)...)
	}
	return events, err
}

// seen is what is to be told of a pod as it is now; nothing if that was told.
func (w *watches) seen(p *v1.Pod, pod []byte) []*podsv1alpha1.WatchPodsEvent {
	before, known := w.told[p.UID]
	if known && bytes.Equal(before.pod, pod) {
		return nil
	}
	w.told[p.UID] = told{types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, pod}
	kind := podsv1alpha1.EventType_ADDED
	if known {
		kind = podsv1alpha1.EventType_MODIFIED
	}
	return []*podsv1alpha1.WatchPodsEvent{{Type: kind, Pod: pod}}
}

// gone is what is to be told of a pod that is gone: its name and uid (kubelet: OnPodRemoved).
func (w *watches) gone(uid types.UID) []*podsv1alpha1.WatchPodsEvent {
	before, known := w.told[uid]
	if !known {
		return nil
	}
	delete(w.told, uid)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: before.name.Namespace, Name: before.name.Name, UID: uid}}
	pod, err := p.Marshal()
	if err != nil {
		return nil // Three strings can be written.
	}
	return []*podsv1alpha1.WatchPodsEvent{{Type: podsv1alpha1.EventType_DELETED, Pod: pod}}
}

// tell tells events to those who have the list of all pods, and that list to those who do not. Who
// lies too far behind is dropped, as by the kubelet's broadcaster. With an error, those who wait for
// the list are dropped.
func (w *watches) tell(events, list []*podsv1alpha1.WatchPodsEvent, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one, has := range w.all {
		switch {
		case !has && err != nil:
			w.drop(one, err)
		case !has && list == nil: // It came meanwhile; its turn is next.
		case !has:
			w.all[one] = true
			one.queue <- list
		case len(events) > 0:
			select {
			case one.queue <- events:
			default:
				w.dropped()
				w.drop(one, status.Error(codes.ResourceExhausted, "the watch does not read its events fast enough; list the pods and watch again"))
			}
		}
	}
}

// drop ends a watch.
func (w *watches) drop(one *watch, because error) {
	delete(w.all, one)
	one.end = because
	close(one.queue)
}

// list is what one is told who has just come: each pod, and that these were all.
func (w *watches) list() []*podsv1alpha1.WatchPodsEvent {
	events := make([]*podsv1alpha1.WatchPodsEvent, 0, len(w.told)+1)
	for _, uid := range slices.Sorted(maps.Keys(w.told)) {
		events = append(events, &podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_ADDED, Pod: w.told[uid].pod})
	}
	return append(events, &podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE})
}
