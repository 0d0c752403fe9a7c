package bundles

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/quote"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/listwatch"
	"github.com/podctl/podctl/runtime/state"
)

const (
	// firstPause and longestPause are the pauses between two tries.
	firstPause, longestPause = 200 * time.Millisecond, 30 * time.Second
	// maxBytes limits all bundles together.
	maxBytes = 32 << 20
)

// unsupported is the kubelet's error if the API server has no ClusterTrustBundles (kubelet: NoopManager).
const unsupported = "ClusterTrustBundle projection is not supported in static kubelet mode"

// shared are the bundles of the API server, for all pods.
type shared struct {
	// stop ends the watch, and waits for its end.
	stop func()

	mu  sync.Mutex
	now content
}

// content has the bundles, and the last error of their watch.
type content struct {
	// all are the bundles by name. known is set once they were read, or if absent is set: the API server has none.
	all           map[string]bundle
	known, absent bool
	// err is the last error of the watch; nil after a success.
	err error
	// next is closed with the next change.
	next chan struct{}
}

// watchAll starts the list and the watch of all bundles.
func watchAll(w *Watcher) *shared {
	ctx, cancel := context.WithCancel(context.Background())
	s := &shared{now: content{next: make(chan struct{})}}
	settings := listwatch.Settings{
		Client: w.Client, Confirm: w.Confirm, Resource: "clustertrustbundles",
		Object: &certificatesv1beta1.ClusterTrustBundle{}, List: &certificatesv1beta1.ClusterTrustBundleList{},
		Backoff: wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 10, Factor: 2, Jitter: 1},
		Report: func(_ context.Context, _ string, err error) {
			if err != nil && ctx.Err() == nil {
				s.fail(err)
			}
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		listwatch.New(settings, s.store()).RunWithContext(ctx)
	}()
	s.stop = func() {
		cancel()
		<-done
	}
	return s
}

func (s *shared) read() content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// change replaces the content, and wakes its readers. Content that was read does not change.
func (s *shared) change(do func(*content)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.now)
	close(s.now.next)
	s.now.next = make(chan struct{})
}

// fail records an error. Bundles that are known stay. An API server without ClusterTrustBundles answers NotFound.
func (s *shared) fail(err error) {
	s.change(func(c *content) {
		c.err = err
		if apierrors.IsNotFound(err) && (!c.known || c.absent) {
			c.known, c.absent, c.err = true, true, nil
		}
	})
}

// set replaces the bundles unless they are too large together.
func (s *shared) set(do func(all map[string]bundle)) {
	s.change(func(c *content) {
		all := maps.Clone(c.all)
		if all == nil {
			all = map[string]bundle{}
		}
		do(all)
		size := 0
		for _, b := range all {
			size += b.size
		}
		if size > maxBytes {
			c.err = apierror.RejectedError{
				Reason: fmt.Sprintf("the ClusterTrustBundles have %d bytes, which is more than %d", size, maxBytes),
			}
			return
		}
		c.all, c.known, c.absent, c.err = all, true, false, nil
	})
}

// store returns the store of the watch.
func (s *shared) store() listwatch.Store[*certificatesv1beta1.ClusterTrustBundle] {
	type one = *certificatesv1beta1.ClusterTrustBundle
	return listwatch.Store[one]{
		Set:  func(b one) { s.set(func(all map[string]bundle) { all[b.Name] = newBundle(b) }) },
		Gone: func(b one) { s.set(func(all map[string]bundle) { delete(all, b.Name) }) },
		All: func(list []one) {
			s.set(func(all map[string]bundle) {
				clear(all)
				for _, b := range list {
					all[b.Name] = newBundle(b)
				}
			})
		},
	}
}

func newBundle(b *certificatesv1beta1.ClusterTrustBundle) bundle {
	one := bundle{signer: b.Spec.SignerName, labels: b.Labels, anchors: b.Spec.TrustBundle}
	one.size = len(b.Name) + len(one.signer) + len(one.anchors)
	for name, value := range b.Labels {
		one.size += len(name) + len(value)
	}
	return one
}

// object returns the trust anchors for a source; nil if no bundle matches.
func (c content) object(key state.ObjectKey, source *v1.ClusterTrustBundleProjection) *podspec.Object {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	o := &podspec.Object{ConfigMap: &v1.ConfigMap{ObjectMeta: meta}}
	if c.absent {
		o.Unusable = &podspec.UnreadError{Reason: "the API server has no ClusterTrustBundles", Status: unsupported}
		return o
	}
	text, found, err := anchorsOf(source, c.all)
	switch {
	case err != nil:
		o.Unusable = &podspec.UnreadError{Reason: quote.OneLine(err.Error()), Status: quote.OneLine(err.Error())}
	case !found:
		return nil
	}
	o.ConfigMap.Data = map[string]string{podspec.BundleKey: text}
	return o
}
