package references

import (
	"context"
	"fmt"
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
	// Confirm is called before each list and watch. An error keeps the object as it is. If nil, any server counts.
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
	listwatch.New(s, &receiver{key: key, sink: sink}).RunWithContext(ctx)
}

// pauses returns the pauses between two tries.
func pauses() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 8, Factor: 2, Jitter: 1}
}

// receiver passes what a reflector receives to a sink. It ignores other objects.
type receiver struct {
	key  state.ObjectKey
	sink *Sink
}

var _ cache.ReflectorStore = (*receiver)(nil)

// Add sets a new object.
func (t *receiver) Add(obj any) error { return t.Update(obj) }

// Update sets an object that has changed.
func (t *receiver) Update(obj any) error {
	o, err := t.object(obj)
	if err == nil && o != nil {
		t.sink.Set(o)
	}
	return err
}

// Delete records that the object is gone.
func (t *receiver) Delete(obj any) error {
	o, err := t.object(obj)
	if err == nil && o != nil {
		t.sink.Set(nil)
	}
	return err
}

// Replace sets the object of a list, or records that there is none.
func (t *receiver) Replace(list []any, _ string) error {
	for _, obj := range list {
		o, err := t.object(obj)
		if err != nil {
			return err
		}
		if o != nil {
			t.sink.Set(o)
			return nil
		}
	}
	t.sink.Set(nil)
	return nil
}

// Resync does nothing, because there is no resync period.
func (t *receiver) Resync() error { return nil }

// object converts an object of the API server. It returns nil for another than the watched one.
func (t *receiver) object(obj any) (*podspec.Object, error) {
	var o *podspec.Object
	switch found := obj.(type) {
	case *v1.ConfigMap:
		o = &podspec.Object{ConfigMap: found}
	case *v1.Secret:
		o = &podspec.Object{Secret: found}
	default:
		return nil, fmt.Errorf("the API server sent %T instead of a %s", obj, t.key.Kind)
	}
	if meta := o.Meta(); o.Kind() != t.key.Kind || meta.Name != t.key.Name || meta.Namespace != t.key.Namespace {
		return nil, nil
	}
	return o, nil
}
