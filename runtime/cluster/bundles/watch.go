package bundles

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

// podPause is the pause before the next look for a pod that is not known yet.
const podPause = time.Second

// Watcher watches trust anchors for pods. All exported fields are required. It is safe for concurrent use.
type Watcher struct {
	// Client is the REST client of certificates.k8s.io/v1beta1.
	Client cache.Getter
	// Pod returns the pod with a uid as the API server has it, or nil if it is not known.
	Pod func(types.UID) *v1.Pod
	// Confirm is called before each list and watch. Its error is that of the request.
	Confirm func(ctx context.Context) error

	// mu guards the rest. shared is nil while no pod uses a bundle. users counts these uses.
	mu     sync.Mutex
	shared *shared
	users  int
}

// Sink receives the trust anchors for one source of a pod's volume.
type Sink interface {
	// Set replaces them; nil if no bundle matches.
	Set(*podspec.Object)
	// Fail records why they are not known.
	Fail(error)
}

// Watch keeps the trust anchors of one source up to date until the context ends. The key is that of objects.CopyKey.
func (w *Watcher) Watch(ctx context.Context, key state.ObjectKey, sink Sink) {
	source := w.find(ctx, key, sink)
	if source == nil {
		return
	}
	all := w.begin() //nolint:contextcheck // the watch outlives this user
	defer w.end()
	for ctx.Err() == nil {
		now := all.read()
		if now.err != nil {
			sink.Fail(now.err)
		}
		if now.known {
			sink.Set(now.object(key, source))
		}
		select {
		case <-now.next:
		case <-ctx.Done():
		}
	}
}

// find returns the source of a key, and waits until the pod is known. It returns nil at the end of the context.
func (w *Watcher) find(ctx context.Context, key state.ObjectKey, sink Sink) *v1.ClusterTrustBundleProjection {
	uid, name := podspec.UnbindName(key.Name)
	for ctx.Err() == nil {
		reason := "the API server has not sent the pod"
		if pod := w.Pod(uid); pod != nil {
			if source := podspec.FindBundle(pod, name); source != nil && pod.Namespace == key.Namespace {
				return source
			}
			reason = "the pod has no such source of trust anchors"
		}
		sink.Fail(apierror.RejectedError{Reason: reason})
		_ = sleep.For(ctx, podPause) // the loop checks the context
	}
	return nil
}

// begin returns the bundles of the API server. The first user starts their watch.
func (w *Watcher) begin() *shared {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users++; w.users == 1 {
		w.shared = watchAll(w)
	}
	return w.shared
}

// end ends the watch with its last user.
func (w *Watcher) end() {
	if last := w.leave(); last != nil {
		last.stop()
	}
}

// leave returns the bundles that no user needs any more; nil if there is another user.
func (w *Watcher) leave() (last *shared) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; w.users == 0 {
		last, w.shared = w.shared, nil
	}
	return last
}
