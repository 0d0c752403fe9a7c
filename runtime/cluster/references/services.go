package references

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/listwatch"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
)

// collectTime is how long changes of Services are collected before the file is written.
const collectTime = 100 * time.Millisecond

// Services are the variables of the cluster's Services. One list and one watch read all of them. Containers that start
// read the result from a file, also without the API server.
type Services struct {
	// Client is the REST client of core/v1, File the file of the result.
	Client cache.Getter
	File   state.ServiceFile
	// Confirm is called before each list and watch. An error keeps the file as it is. If nil, any server counts.
	Confirm func(ctx context.Context) error
	Log     *slog.Logger

	// mu guards services, which is nil before the first list.
	mu       sync.Mutex
	services map[types.NamespacedName]*v1.Service
}

// Run keeps the file up to date until the context ends. It writes nothing before the API server has answered.
func (s *Services) Run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var reflector sync.WaitGroup
	defer reflector.Wait()
	reflector.Go(func() {
		listwatch.New(listwatch.Settings{
			Client: s.Client, Resource: "services", Object: &v1.Service{}, List: &v1.ServiceList{},
			WatchMin: shortestWatch, Backoff: pauses(), Confirm: s.Confirm,
		}, serviceStore{s, changed}).RunWithContext(ctx)
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if err := s.write(); err != nil {
			s.Log.Warn("cannot store the variables of Services", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(collectTime):
		}
	}
}

// write writes the file if its content changes.
func (s *Services) write() error {
	text, err := service.InCluster(s.all()).Encode()
	if err != nil {
		return err
	}
	if before, readErr := s.File.Read(); readErr == nil && bytes.Equal(before, text) {
		return nil
	}
	return s.File.Write(text)
}

// all returns the Services in the order of their names, so that equal Services have equal files.
func (s *Services) all() []*v1.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.services), func(a, b *v1.Service) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
}

// serviceStore receives the results of the reflector.
type serviceStore struct {
	*Services

	changed chan<- struct{}
}

var _ cache.ReflectorStore = serviceStore{}

func (s serviceStore) change(do func()) {
	s.mu.Lock()
	do()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Add adds a new Service.
func (s serviceStore) Add(obj any) error { return s.Update(obj) }

// Update sets a Service that has changed.
func (s serviceStore) Update(obj any) error {
	one, err := serviceOf(obj)
	if err == nil {
		s.change(func() { s.services[nameOf(one)] = one })
	}
	return err
}

// Delete removes a Service that is gone.
func (s serviceStore) Delete(obj any) error {
	one, err := serviceOf(obj)
	if err == nil {
		s.change(func() { delete(s.services, nameOf(one)) })
	}
	return err
}

// Replace sets all Services, as a list has returned them.
func (s serviceStore) Replace(list []any, _ string) error {
	all := make(map[types.NamespacedName]*v1.Service, len(list))
	for _, obj := range list {
		one, err := serviceOf(obj)
		if err != nil {
			return err
		}
		all[nameOf(one)] = one
	}
	s.change(func() { s.services = all })
	return nil
}

// Resync does nothing, because there is no resync period.
func (s serviceStore) Resync() error { return nil }

func nameOf(s *v1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// serviceOf returns the parts of a Service that variables depend on.
func serviceOf(obj any) (*v1.Service, error) {
	s, is := obj.(*v1.Service)
	if !is {
		return nil, fmt.Errorf("the API server sent %T instead of a Service", obj)
	}
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec:       v1.ServiceSpec{Type: s.Spec.Type, ClusterIP: s.Spec.ClusterIP, Ports: s.Spec.Ports},
	}, nil
}
