package references

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/listwatch"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

const (
	// collectTime is how long changes are collected before the file is written.
	collectTime = 100 * time.Millisecond
	// writeAgain is the time until a failed write is tried again, for example because the disk is full.
	writeAgain = 10 * time.Second
)

// apiObject is an object of the API.
type apiObject interface {
	runtime.Object
	metav1.Object
}

// Collection are the settings of a file with all objects of a kind.
type Collection struct {
	// Client is the REST client of the group and version of the kind.
	Client cache.Getter
	File   state.SharedFile
	// Confirm is called before each list and watch. An error keeps the file as it is.
	Confirm func(ctx context.Context) error
	// Changed is called after each change of the file; it may be nil.
	Changed func()
	Log     *slog.Logger
}

// collection keeps a file with the last state of all objects of a kind, which a node may list. One list and one watch
// read them. Passes read the file, also without the API server.
type collection[T apiObject] struct {
	Collection
	// what names the collection in messages, such as "the Services". resource is the plural name of the kind.
	what     string
	resource string
	object   T
	list     runtime.Object
	// part returns the parts of an object that the file depends on.
	part func(T) T
	// encode returns the contents of the file. The objects are in the order of their names.
	encode func([]T) ([]byte, error)

	// mu guards objects, which is nil before the first list.
	mu      sync.Mutex
	objects map[types.NamespacedName]T
}

// run keeps the file up to date until the context ends. It writes nothing before the API server has answered.
func (c *collection[T]) run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var reflector sync.WaitGroup
	defer reflector.Wait()
	log := &listwatch.Log{To: c.Log, What: c.what}
	reflector.Go(func() {
		listwatch.New(listwatch.Settings{
			Client: c.Client, Resource: c.resource, Object: c.object, List: c.list,
			WatchMin: shortestWatch, Backoff: pauses(), Confirm: c.Confirm, Report: log.Report, Works: log.Works,
		}, c.store(changed)).RunWithContext(ctx)
	})
	var failures apierror.Once
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		pause, err := collectTime, c.write()
		if err != nil {
			pause = writeAgain
			sleep.Wake(changed)
		}
		failures.Warn(ctx, c.Log, "cannot store "+c.what+" of the API server", err)
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
}

// write writes the file if its content changes.
func (c *collection[T]) write() error {
	text, err := c.encode(c.all())
	if err != nil {
		return err
	}
	if before, readErr := c.File.Read(); readErr == nil && bytes.Equal(before, text) {
		return nil
	}
	if err = c.File.Write(text); err == nil && c.Changed != nil {
		c.Changed()
	}
	return err
}

// all returns the objects in the order of their names, so that equal objects have equal files.
func (c *collection[T]) all() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.objects), func(a, b T) int {
		return slices.Compare([]string{a.GetNamespace(), a.GetName()}, []string{b.GetNamespace(), b.GetName()})
	})
}

// store returns the store of the reflector. It notifies changed after each change.
func (c *collection[T]) store(changed chan<- struct{}) listwatch.Store[T] {
	change := func(do func()) {
		c.mu.Lock()
		do()
		c.mu.Unlock()
		sleep.Wake(changed)
	}
	return listwatch.Store[T]{
		Set: func(one T) {
			part := c.part(one)
			change(func() { c.objects[nameOf(part)] = part })
		},
		Gone: func(one T) { change(func() { delete(c.objects, nameOf(c.part(one))) }) },
		All: func(list []T) {
			objects := make(map[types.NamespacedName]T, len(list))
			for _, one := range list {
				part := c.part(one)
				objects[nameOf(part)] = part
			}
			change(func() { c.objects = objects })
		},
	}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
