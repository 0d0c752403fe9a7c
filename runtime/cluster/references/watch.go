package references

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/listwatch"
	"github.com/podctl/podctl/runtime/state"
)

const (
	// shortestWatch is the shortest time after which the API server may end a watch (kubelet: NewObjectCache).
	shortestWatch = 30 * time.Minute
	// firstPause and longestPause are the pauses between two tries. Right after a pod was bound to this node, the API
	// server may refuse its objects for a moment.
	firstPause, longestPause = 200 * time.Millisecond, 10 * time.Second
)

// Watcher watches objects of the API server.
type Watcher struct {
	// Client is the REST client of core/v1.
	Client cache.Getter
	// Confirm is called before each list and watch. An error keeps the object as it is.
	Confirm func(ctx context.Context) error
}

// Watch watches one ConfigMap or Secret until the context ends. It requests only this object: a node may not list the
// others of its namespace.
func (w Watcher) Watch(ctx context.Context, key state.ObjectKey, sink *Sink) {
	s := listwatch.Settings{
		Client: w.Client, Resource: "configmaps", Object: &v1.ConfigMap{}, List: &v1.ConfigMapList{},
		Namespace: key.Namespace, Fields: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name),
		WatchMin: shortestWatch, Backoff: pauses(), Confirm: w.Confirm,
		Report: func(_ context.Context, _ string, err error) {
			if err != nil && ctx.Err() == nil {
				sink.Fail(err)
			}
		},
	}
	if key.Kind == podspec.KindSecret {
		s.Resource, s.Object, s.List = "secrets", &v1.Secret{}, &v1.SecretList{}
	}
	listwatch.New(s, storeOf(key, sink)).RunWithContext(ctx)
}

// pauses returns the pauses between two tries.
func pauses() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 8, Factor: 2, Jitter: 1}
}

// storeOf returns a store that passes one object to a sink. It ignores others.
func storeOf(key state.ObjectKey, sink *Sink) listwatch.Store[metav1.Object] {
	return listwatch.Store[metav1.Object]{
		Set: func(obj metav1.Object) {
			if o := objectOf(key, obj); o != nil {
				sink.Set(o)
			}
		},
		Gone: func(obj metav1.Object) {
			if objectOf(key, obj) != nil {
				sink.Set(nil)
			}
		},
		All: func(list []metav1.Object) {
			var found *podspec.Object
			for _, obj := range list {
				found = cmp.Or(found, objectOf(key, obj))
			}
			sink.Set(found)
		},
	}
}

// objectOf converts an object of the API server. It returns nil for another than that of the key.
func objectOf(key state.ObjectKey, obj metav1.Object) *podspec.Object {
	o := &podspec.Object{}
	switch found := obj.(type) {
	case *v1.ConfigMap:
		o.ConfigMap = found
	case *v1.Secret:
		o.Secret = found
	default:
		return nil
	}
	if o.Kind() != key.Kind || obj.GetName() != key.Name || obj.GetNamespace() != key.Namespace {
		return nil
	}
	return o
}
