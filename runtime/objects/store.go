package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Store stores the objects of one state directory.
type Store struct {
	Files[podspec.Object]

	locker *state.Locker
	now    func() time.Time
	// pretended are objects that count as stored, for plans.
	pretended map[state.ObjectKey]*podspec.Object
	// Owner returns the process or setting that has a port of the node. No Service can have that port. Nil means that
	// all are free.
	Owner func(podspec.Port) string
}

// New returns a Store.
func New(locker *state.Locker, now func() time.Time) *Store {
	return &Store{locker: locker, Files: Files[podspec.Object]{Dir: locker.Layout.Objects(), Decode: decode}, now: now}
}

// Secrets returns all readable stored Secrets, to remove their values from texts. An unreadable one is in no text.
func (s *Store) Secrets() podspec.Objects {
	found, _ := s.List(func(key state.ObjectKey) bool { return key.Kind == podspec.KindSecret })
	all := podspec.Objects{}
	for _, o := range found {
		o.Secret.Name = o.Secret.Namespace + "/" + o.Secret.Name
		all.Put(o)
	}
	return all
}

// Changes returns what Put would do.
func (s *Store) Changes(objects []*podspec.Object) ([]Change, error) {
	changes := make([]Change, len(objects))
	a, err := s.allocation(objects)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(objects))
	for _, i := range a.order(objects) {
		changes[i], errs[i] = s.change(objects[i], a)
	}
	return changes, errors.Join(errs...)
}

// change compares an object with the stored one. A damaged one is replaced.
func (s *Store) change(o *podspec.Object, a *allocation) (Change, error) {
	key := KeyOf(o)
	if err := checkRedacted(o); err != nil {
		return Change{}, err
	}
	before, err := s.Find(key)
	damaged := errors.Is(err, state.ErrDamaged)
	if err != nil && !damaged {
		return Change{}, err
	}
	kept := Normal(o)
	if err = a.fill(kept, before); err != nil {
		return Change{}, err
	}
	if damaged {
		return Change{Key: key, Outcome: Configured, kept: kept}, nil
	}
	if before != nil && KeepsOwner(before.Owner, before.Source, o.Owner, o.Source) {
		kept.Owner, kept.Source = before.Owner, before.Source
	}
	c, err := changeOf(key, before, kept)
	c.kept, c.Notes = kept, a.notes(kept, before)
	return c, err
}

// Put stores all objects, or none if one of them is refused. It calls done for each.
func (s *Store) Put(ctx context.Context, objects []*podspec.Object, done func(Change)) (err error) {
	lock, err := s.locker.LockObjects(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	changes, err := s.Changes(objects)
	if err == nil {
		err = s.checkRoom(changes)
	}
	if err != nil {
		return err
	}
	for i := range objects {
		if err = s.put(changes[i]); err != nil {
			return err
		}
		done(changes[i])
	}
	return nil
}

// checkRoom refuses objects beyond the maximum.
func (s *Store) checkRoom(changes []Change) error {
	keys, err := s.Dir.List()
	if err != nil {
		return err
	}
	more := 0
	for _, c := range changes {
		if !slices.Contains(keys, c.Key) {
			more++
		}
	}
	if more > 0 && len(keys)+more > state.ObjectsMax {
		return fmt.Errorf("%d ConfigMaps, Secrets, claims and Services are stored, "+
			"and %d more would exceed the limit of %d: delete some", len(keys), more, state.ObjectsMax)
	}
	return nil
}

func (s *Store) put(c Change) error {
	kept := c.kept
	kept.Meta().CreationTimestamp = metav1.NewTime(s.now().UTC().Truncate(time.Second))
	before, err := s.Find(c.Key)
	if err == nil && before != nil {
		kept.Meta().CreationTimestamp = before.Meta().CreationTimestamp
	}
	if c.Outcome == Unchanged && (before == nil ||
		before.Set == kept.Set && before.Owner == kept.Owner && before.Source == kept.Source) {
		return nil
	}
	text, err := encode(kept)
	if err != nil {
		return fmt.Errorf("storing %s: %w", c.Key, err)
	}
	return s.Dir.Write(c.Key, text)
}

// Delete removes a stored object, even a damaged one, or returns a *NotFoundError.
func (s *Store) Delete(ctx context.Context, key state.ObjectKey) (err error) {
	lock, err := s.locker.LockObjects(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if _, err = s.Get(key); err != nil && !errors.Is(err, state.ErrDamaged) {
		return err
	}
	return s.Dir.Remove(key)
}
