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
	"github.com/podctl/podctl/runtime/agent/grpcapi"
	"github.com/podctl/podctl/runtime/sleep"
)

// queued is the maximum number of pending batches of a watch (kubelet: WatchPods).
const queued = 100

// watches are the active watches. One goroutine reads pods for all of them, and sleeps while there are none.
type watches struct {
	agent   grpcapi.Agent
	dropped func()
	// wakeup wakes the goroutine.
	wakeup chan struct{}

	mu sync.Mutex
	// all maps each watch to whether it has received the initial list.
	all map[*watch]bool
	// changed are the pods to read. ended are the pods that are gone. A new pod with the same UID may already exist.
	changed, ended map[types.UID]bool

	// sent is the last state sent of each pod. Only the goroutine uses it.
	sent map[types.UID]sentPod
}

// watch is one client that watches.
type watch struct {
	// queue holds events in order. It is closed when the watch ends. end is the reason.
	queue chan []*podsv1alpha1.WatchPodsEvent
	end   error
}

// sentPod is the last state sent of one pod.
type sentPod struct {
	name types.NamespacedName
	pod  []byte
}

// Changed notifies watches that the status of a pod may have changed.
func (s *Server) Changed(uid types.UID) {
	s.watches.record(func(w *watches) { w.changed[uid] = true })
}

// Ended notifies watches that a pod is gone.
func (s *Server) Ended(uid types.UID) {
	s.watches.record(func(w *watches) { w.changed[uid], w.ended[uid] = true, true })
}

// ListChanged notifies watches that the set of shown pods may have changed.
func (s *Server) ListChanged() { s.watches.record(func(*watches) {}) }

// record records a change if there are watches.
func (w *watches) record(remember func(*watches)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) > 0 {
		remember(w)
		w.wake()
	}
}

func (w *watches) wake() { sleep.Wake(w.wakeup) }

// add starts a watch.
func (w *watches) add() *watch {
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

// remove ends a watch whose client is gone.
func (w *watches) remove(one *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, one)
	w.wake()
}

// run sends changes until the context ends.
func (w *watches) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wakeup:
			w.turn(ctx)
		}
	}
}

// turn reads the pods that may have changed, and sends the changes.
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
		w.sent = map[types.UID]sentPod{}
	}
	if !fresh && !old {
		return
	}
	events, err := w.collect(ctx, ended, func(uid types.UID) bool { return fresh || changed[uid] })
	var list []*podsv1alpha1.WatchPodsEvent
	if fresh && err == nil {
		list = w.list()
	}
	w.send(events, list, err)
	if err != nil {
		// They are read again at the next change.
		w.mu.Lock()
		maps.Copy(w.changed, changed)
		w.mu.Unlock()
	}
}

// collect returns events for the pods that may have changed and for new pods.
func (w *watches) collect(
	ctx context.Context, ended map[types.UID]bool, changed func(types.UID) bool,
) (events []*podsv1alpha1.WatchPodsEvent, err error) {
	for _, uid := range slices.Sorted(maps.Keys(ended)) {
		events = append(events, w.goneEvents(uid)...)
	}
	shown, err := w.agent.Shown(ctx)
	if err != nil {
		return events, unavailable(err)
	}
	there := map[types.UID]bool{}
	var look []*podspec.Desired
	for _, d := range shown {
		there[d.Pod.UID] = true
		if _, known := w.sent[d.Pod.UID]; !known || changed(d.Pod.UID) {
			look = append(look, d)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.sent)) {
		if !there[uid] {
			events = append(events, w.goneEvents(uid)...)
		}
	}
	pods, err := encode(ctx, w.agent, look)
	for i, pod := range pods {
		events = append(events, w.changeEvents(look[i].Pod, pod)...)
	}
	return events, err
}

// changeEvents returns the event for the present state of a pod. It is empty if that was already sent.
func (w *watches) changeEvents(p *v1.Pod, pod []byte) []*podsv1alpha1.WatchPodsEvent {
	before, known := w.sent[p.UID]
	if known && bytes.Equal(before.pod, pod) {
		return nil
	}
	w.sent[p.UID] = sentPod{types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, pod}
	kind := podsv1alpha1.EventType_ADDED
	if known {
		kind = podsv1alpha1.EventType_MODIFIED
	}
	return []*podsv1alpha1.WatchPodsEvent{{Type: kind, Pod: pod}}
}

// goneEvents returns the event for a pod that is gone, with its name and UID (kubelet: OnPodRemoved).
func (w *watches) goneEvents(uid types.UID) []*podsv1alpha1.WatchPodsEvent {
	before, known := w.sent[uid]
	if !known {
		return nil
	}
	delete(w.sent, uid)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: before.name.Namespace, Name: before.name.Name, UID: uid}}
	pod, err := p.Marshal()
	if err != nil {
		return nil // Not reached: the pod has only three strings.
	}
	return []*podsv1alpha1.WatchPodsEvent{{Type: podsv1alpha1.EventType_DELETED, Pod: pod}}
}

// send sends events to the watches that have the initial list, and the list to the others. It drops a watch whose queue
// is full, as the kubelet's broadcaster does. With an error, it drops the watches that wait for the list.
func (w *watches) send(events, list []*podsv1alpha1.WatchPodsEvent, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one, has := range w.all {
		switch {
		case !has && err != nil:
			w.drop(one, err)
		case !has && list == nil: // The watch started after the list was made. It gets its list in the next turn.
		case !has:
			w.all[one] = true
			one.queue <- list
		case len(events) > 0:
			select {
			case one.queue <- events:
			default:
				w.dropped()
				w.drop(one, status.Error(codes.ResourceExhausted,
					"the watch does not read its events fast enough; list the pods and watch again"))
			}
		}
	}
}

// drop ends a watch with an error.
func (w *watches) drop(one *watch, because error) {
	delete(w.all, one)
	one.end = because
	close(one.queue)
}

// list returns the initial events of a watch: each pod, and the end of the list.
func (w *watches) list() []*podsv1alpha1.WatchPodsEvent {
	events := make([]*podsv1alpha1.WatchPodsEvent, 0, len(w.sent)+1)
	for _, uid := range slices.Sorted(maps.Keys(w.sent)) {
		events = append(events, &podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_ADDED, Pod: w.sent[uid].pod})
	}
	return append(events, &podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE})
}
