package objects

import (
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/runtime/state"
)

// Files reads documents that are stored by kind, namespace and name: objects, or the records of workloads.
type Files[T any] struct {
	// Dir is their place.
	Dir state.Objects
	// Decode reads the text of one. What is in it must be what its place says.
	Decode func(key state.ObjectKey, text []byte) (*T, error)
}

// NotFoundError says that no such object is stored.
type NotFoundError struct{ Key state.ObjectKey }

// Error says how to see which ones are.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no %s is stored here (`podctl get %s -A` lists those that are)", e.Key, e.Key.Word())
}

// Get reads one, or returns a *NotFoundError.
func (f Files[T]) Get(key state.ObjectKey) (*T, error) {
	found, err := f.Find(key)
	if err == nil && found == nil {
		err = &NotFoundError{Key: key}
	}
	return found, err
}

// Find reads one; nil if there is none.
func (f Files[T]) Find(key state.ObjectKey) (*T, error) {
	text, err := f.Dir.Read(key)
	if err != nil || text == nil {
		return nil, err
	}
	found, err := f.Decode(key, text)
	if errors.Is(err, state.ErrDamaged) {
		err = fmt.Errorf("%w; apply it again, or delete it with podctl delete %s/%s -n %s", err, key.Word(), key.Name, key.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored %s: %w", key, err)
	}
	return found, nil
}

// List reads those that match, in order. One that cannot be read hides no other: those errors are joined.
func (f Files[T]) List(match func(state.ObjectKey) bool) ([]*T, error) {
	keys, err := f.Dir.List()
	if err != nil {
		return nil, err
	}
	var found []*T
	var errs []error
	for _, key := range keys {
		if !match(key) {
			continue
		}
		one, err := f.Find(key)
		if one != nil {
			found = append(found, one)
		}
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// All reads all.
func (f Files[T]) All() ([]*T, error) { return f.List(func(state.ObjectKey) bool { return true }) }

// ChangedAt is when one was changed last.
func (f Files[T]) ChangedAt() time.Time { return f.Dir.ChangedAt() }
