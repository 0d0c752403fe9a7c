package objects

import (
	"context"
	"errors"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Pretend makes objects count as stored, so that plans show what they would change. It stores nothing.
func (s *Store) Pretend(objects []*podspec.Object) {
	s.pretended = map[state.ObjectKey]*podspec.Object{}
	for _, o := range objects {
		s.pretended[KeyOf(o)] = Normal(o)
	}
}

// Provider adds to a pod the current objects that it refers to and that its own manifest does not contain. It does not
// change the pod that it gets. There are two: a Store for podctl's own pods, and the objects of the cluster for those
// of the API server (Copies, or the watches of an agent). Each returns the pods of the other as they are.
type Provider interface {
	Complete(ctx context.Context, d *podspec.Desired) (*podspec.Desired, error)
}

// Complete adds the stored objects that a pod refers to and that its own manifest does not contain. It reads nothing
// for a pod without such references. A pod of the API server means the objects of its cluster and gets none of these.
func (s *Store) Complete(_ context.Context, d *podspec.Desired) (*podspec.Desired, error) {
	return s.complete(d)
}

func (s *Store) complete(d *podspec.Desired) (*podspec.Desired, error) {
	if d != nil && d.FromCluster() {
		return d, nil
	}
	return d.WithShared(s.find)
}

// find returns an object for a pod, without its creation time, which pods do not depend on. A pod may refer to an
// invalid name: no object has it.
func (s *Store) find(namespace string, name podspec.ObjectName) (*podspec.Object, error) {
	key := state.ObjectKey{Namespace: namespace, Kind: name.Kind, Name: name.Name}
	if o := s.pretended[key]; o != nil {
		return o, nil
	}
	o, err := s.Find(key)
	if refused := (*state.NameError)(nil); errors.As(err, &refused) {
		return nil, nil
	}
	if o != nil {
		*o = *Normal(o)
	}
	return o, err
}

// Loaded is Complete for a pod of a manifest. It also returns which of the manifest's own objects are also stored. The
// stored ones do not count.
func (s *Store) Loaded(d *podspec.Desired) (with *podspec.Desired, hidden []podspec.ObjectName, err error) {
	if with, err = s.complete(d); err != nil {
		return nil, nil, err
	}
	own := d.Own()
	for _, name := range podspec.ReferredObjects(d.Pod) {
		if name.Kind == podspec.KindClaim || !own.Has(name.Kind, name.Name) {
			continue
		}
		stored, err := s.Dir.Read(state.ObjectKey{Namespace: d.Pod.Namespace, Kind: name.Kind, Name: name.Name})
		if err == nil && stored != nil {
			hidden = append(hidden, name)
		}
	}
	return with, hidden, nil
}

// Users returns the pods that use an object of the store, or would.
func Users(key state.ObjectKey, pods []*podspec.Desired) []*podspec.Desired {
	var users []*podspec.Desired
	for _, d := range pods {
		if d.Shares(key.Namespace, podspec.ObjectName{Kind: key.Kind, Name: key.Name}) {
			users = append(users, d)
		}
	}
	return users
}
