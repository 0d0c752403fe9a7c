package objects

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
)

// Services are the stored Services that can be read, in order. With an error some are missing.
func (s *Store) Services() ([]*v1.Service, error) {
	found, err := s.List(func(key state.ObjectKey) bool { return key.Kind == podspec.KindService })
	services := make([]*v1.Service, 0, len(found))
	for _, o := range found {
		services = append(services, o.Service)
	}
	return services, err
}

// allocation gives the Services among objects their addresses and ports; nil where there are none among them.
type allocation struct {
	taken service.Taken
	// stored are the Services that were there before.
	stored map[state.ObjectKey]bool
}

// allocation knows what all Services and pods have, but for the Services that are stored anew.
func (s *Store) allocation(objects []*podspec.Object) (*allocation, error) {
	if !slices.ContainsFunc(objects, func(o *podspec.Object) bool { return o.Service != nil }) {
		return nil, nil
	}
	// One that cannot be read has what nobody knows, and is told where it is read itself.
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

// addPods notes the ports of the node that pods have. Containers of a finished pod never start again.
func (s *Store) addPods(taken *service.Taken, ports func(*v1.Pod) []podspec.Port) error {
	pods, _, err := state.Applied(s.locker.Layout)
	for _, p := range pods {
		if p.Checkpoint.Completion == nil {
			taken.Publish(ports(p.Desired.Pod), "pod "+model.RefOf(p.Desired.Pod).String())
		}
	}
	return err
}

// order is the order in which objects get what they need: Services that are there keep what they have, and come first.
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

// fill gives a Service what it lacks; of other objects nothing changes.
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

// notes says which ports of a stored Service a process of the machine has, too.
func (a *allocation) notes(o, before *podspec.Object) []string {
	if o.Service == nil || before == nil {
		return nil
	}
	return a.taken.Shadowed(o.Service, before.Service)
}

// Publisher returns the Service or pod to which the kernel leads connections to a port of the node; empty for none.
func (s *Store) Publisher(port podspec.Port) string {
	// What cannot be read is reported where it is used.
	services, _ := s.Services()
	var taken service.Taken
	for _, one := range services {
		taken.Add(one)
	}
	_ = s.addPods(&taken, podspec.PublishedPorts)
	return taken.Owner(port)
}
