package listwatch

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Store passes the objects of a reflector to functions. All fields are required. The objects have no managedFields,
// which a node does not need and which are a large part of their size.
type Store[T metav1.Object] struct {
	// Set is called with each object that is new or has changed, and Gone with the last version of one that is gone.
	Set, Gone func(T)
	// All is called with the objects of each list. They replace those before.
	All func([]T)
}

var _ cache.ReflectorStore = Store[metav1.Object]{}

// Add passes on a new object.
func (s Store[T]) Add(obj any) error { return s.Update(obj) }

// Update passes on an object that has changed.
func (s Store[T]) Update(obj any) error {
	one, err := objectOf[T](obj)
	if err == nil {
		s.Set(one)
	}
	return err
}

// Delete passes on an object that is gone.
func (s Store[T]) Delete(obj any) error {
	one, err := objectOf[T](obj)
	if err == nil {
		s.Gone(one)
	}
	return err
}

// Replace passes on the objects of a list.
func (s Store[T]) Replace(list []any, _ string) error {
	all := make([]T, 0, len(list))
	for _, obj := range list {
		one, err := objectOf[T](obj)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	s.All(all)
	return nil
}

// Resync does nothing, because there is no resync period.
func (s Store[T]) Resync() error { return nil }

func objectOf[T metav1.Object](obj any) (one T, err error) {
	one, is := obj.(T)
	if !is {
		return one, fmt.Errorf("the API server sent %T instead of %T", obj, one)
	}
	one.SetManagedFields(nil)
	return one, nil
}
