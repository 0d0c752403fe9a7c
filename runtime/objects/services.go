package objects

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
)

// Services returns the readable stored Services, in order. With an error some are missing.
func (s *Store) Services() ([]*v1.Service, error) {
	found, err := s.List(func(key state.ObjectKey) bool { return key.Kind == podspec.KindService })
	services := make([]*v1.Service, 0, len(found))
	for _, o := range found {
		services = append(services, o.Service)
	}
	return services, err
}

// allocation allocates addresses and ports for the Services among objects; nil if there are none.
type allocation struct {
	taken service.Taken
	// stored are the Services that already existed.
	stored map[state.ObjectKey]bool
}

// allocation returns the addresses and ports of all Services and pods, except of Services that are stored again.
func (s *Store) allocation(objects []*podspec.Object) (*allocation, error) {
	if !slices.ContainsFunc(objects, func(o *podspec.Object) bool { return o.Service != nil }) {
		return nil, nil
	}
	// The values of an unreadable Service are unknown. The error is reported where that Service itself is read.
	services, _ := s.Services()
	a := &allocation{taken: service.Taken{Process: s.Owner}, stored: map[state.ObjectKey]bool{}}
	for _, one := range services {
		key := KeyOf(&podspec.Object{Service: one})
		a.stored[key] = true
		if !slices.ContainsFunc(objects, func(o *podspec.Object) bool { return KeyOf(o) == key }) {
			a.taken.Add(one)
		}
	}
	return a, s.addPods(&a.taken, podspec.HostPorts)
}

// addPods adds the ports of the node that pods have. Containers of a finished pod never start again.
func (s *Store) addPods(taken *service.Taken, ports func(*v1.Pod) []podspec.Port) error {
	pods, _, err := state.Applied(s.locker.Layout)
	for _, p := range pods {
		if p.Checkpoint.Completion == nil {
			taken.Publish(ports(p.Desired.Pod), "pod "+model.RefOf(p.Desired.Pod).String())
		}
	}
	return err
}

// order returns the order of allocation. Existing Services come first, because they keep their values.
func (a *allocation) order(objects []*podspec.Object) []int {
	var first, then []int
	for i, o := range objects {
		if a != nil && a.stored[KeyOf(o)] {
			first = append(first, i)
		} else {
			then = append(then, i)
		}
	}
	return append(first, then...)
}

// fill allocates the missing values of a Service. It does not change other objects.
func (a *allocation) fill(o, before *podspec.Object) error {
	if o.Service == nil {
		return nil
	}
	var was *v1.Service
	if before != nil {
		was = before.Service
	}
	return a.taken.Fill(o.Service, was)
}

// notes describes which ports of a stored Service a process of the machine has, too.
func (a *allocation) notes(o, before *podspec.Object) []string {
	if o.Service == nil || before == nil {
		return nil
	}
	return a.taken.Shadowed(o.Service, before.Service)
}

// Publisher returns the Service or pod to which the kernel forwards connections to a port of the node; empty if there
// is none.
func (s *Store) Publisher(port podspec.Port) string {
	// Unreadable Services are reported where they are used.
	services, _ := s.Services()
	var taken service.Taken
	for _, one := range services {
		taken.Add(one)
	}
	_ = s.addPods(&taken, podspec.PublishedPorts)
	return taken.Owner(port)
}
