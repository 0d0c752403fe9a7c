package objects

import (
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/runtime/state"
)

// Files reads documents that are stored by kind, namespace and name: objects, or the records of workloads.
type Files[T any] struct {
	// Dir is their directory.
	Dir state.Objects
	// Decode decodes one document. The contents must match the key.
	Decode func(key state.ObjectKey, text []byte) (*T, error)
}

// NotFoundError reports that no such object is stored.
type NotFoundError struct{ Key state.ObjectKey }

// Error names the command that lists the stored ones.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no %s is stored here (`podctl get %s -A` lists those that are)", e.Key, e.Key.Word())
}

// Get reads one document, or returns a *NotFoundError.
func (f Files[T]) Get(key state.ObjectKey) (*T, error) {
	found, err := f.Find(key)
	if err == nil && found == nil {
		err = &NotFoundError{Key: key}
	}
	return found, err
}

// Find reads one document; nil if it does not exist.
func (f Files[T]) Find(key state.ObjectKey) (*T, error) {
	text, err := f.Dir.Read(key)
	if err != nil || text == nil {
		return nil, err
	}
	found, err := f.Decode(key, text)
	if errors.Is(err, state.ErrDamaged) {
		err = fmt.Errorf("%w; apply it again, or delete it with podctl delete %s/%s -n %s",
			err, key.Word(), key.Name, key.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored %s: %w", key, err)
	}
	return found, nil
}

// List reads the documents that match, in order. It skips unreadable ones and joins their errors.
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

// All reads all documents.
func (f Files[T]) All() ([]*T, error) { return f.List(func(state.ObjectKey) bool { return true }) }

// ChangedAt returns when a document last changed.
func (f Files[T]) ChangedAt() time.Time { return f.Dir.ChangedAt() }
