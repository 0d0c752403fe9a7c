package objects

import (
	"errors"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Pretend lets objects count as stored, so that plans show what they would change. Nothing is
// stored.
func (s *Store) Pretend(objects []*podspec.Object) {
	s.pretended = map[state.ObjectKey]*podspec.Object{}
	for _, o := range objects {
		s.pretended[KeyOf(o)] = normal(o)
	}
}

// Complete gives a pod what is stored now of the objects that it names and its own manifest does
// not bring. Nothing is read for a pod that names no such object.
func (s *Store) Complete(d *podspec.Desired) (*podspec.Desired, error) { return d.WithShared(s.find) }

// find is an object as pods take it: when it was stored is nothing that they depend on. A pod
// may name what no object can be called: there is none of that name.
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
		*o = *normal(o)
	}
	return o, err
}

// Loaded is Complete for a pod of a manifest. It returns which of the manifest's own objects are
// stored as well, and do not count.
func (s *Store) Loaded(d *podspec.Desired) (with *podspec.Desired, hidden []podspec.ObjectName, err error) {
	if with, err = s.Complete(d); err != nil {
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

// Users are the pods that take an object from the store, or would.
func Users(key state.ObjectKey, pods []*podspec.Desired) []*podspec.Desired {
	var users []*podspec.Desired
	for _, d := range pods {
		if d.Shares(key.Namespace, podspec.ObjectName{Kind: key.Kind, Name: key.Name}) {
			users = append(users, d)
		}
	}
	return users
}
