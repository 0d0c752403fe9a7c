package references

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// maxObject limits the data of one object in bytes, as the API server does.
const maxObject = v1.MaxSecretSize

// Sink receives the results of one watch, from one goroutine.
type Sink struct {
	references *References
	key        state.ObjectKey
	watch      *watch
}

// watch starts the watch of an object. The caller holds mu.
func (r *References) watch(key state.ObjectKey, o *object, now time.Time) {
	if r.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(r.ctx)
	o.watch = &watch{begun: now, news: make(chan struct{}), stop: stop}
	sink := &Sink{references: r, key: key, watch: o.watch}
	r.work.Go(func() { r.settings.Watch(ctx, key, sink) })
}

// Set records the object as the API server has it; nil if it has none.
func (s *Sink) Set(o *podspec.Object) {
	if size := dataSize(o); size > maxObject {
		s.Fail(apierror.RejectedError{
			Reason: fmt.Sprintf("it has %d bytes, which is more than %d", size, maxObject),
		})
		return
	}
	if o != nil {
		o = objects.Normal(o)
	}
	r := s.references
	if s.isCurrent() {
		r.keep(s.key, o) // A pod must not use an object that a start without the API server would miss.
	}
	for _, uid := range s.set(o) {
		r.settings.Wake(uid)
	}
}

func (s *Sink) isCurrent() bool {
	s.references.mu.Lock()
	defer s.references.mu.Unlock()
	return s.object() != nil
}

// object returns the object if this is still its watch. The caller holds mu.
func (s *Sink) object() *object {
	if o := s.references.table.objects[s.key]; o != nil && o.watch == s.watch {
		return o
	}
	return nil
}

// set records an answer, and returns the pods to wake. An object that cannot change is not watched any longer.
func (s *Sink) set(value *podspec.Object) []types.UID {
	size := objects.Size(value)
	r := s.references
	r.mu.Lock()
	defer r.mu.Unlock()
	o := s.object()
	if o == nil {
		return nil
	}
	wake := r.table.set(s.key, value, size)
	s.watch.answered = true
	if o.isFinal() {
		o.end()
	} else {
		s.watch.notify()
	}
	return wake
}

// Current returns the last known object, also from its copy. It is nil if there is none.
func (s *Sink) Current() *podspec.Object {
	s.references.mu.Lock()
	defer s.references.mu.Unlock()
	if o := s.object(); o != nil && o.known {
		return o.value
	}
	return nil
}

// Fail records that the API server did not answer, or refused the watch. The last value stays.
func (s *Sink) Fail(err error) {
	r := s.references
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := s.object(); o != nil {
		o.failure = reasonOf(err)
		s.watch.notify()
	}
}

// dataSize returns the size of an object's data in bytes.
func dataSize(o *podspec.Object) int {
	size := 0
	switch {
	case o == nil:
	case o.Secret != nil:
		for _, value := range o.Secret.Data {
			size += len(value)
		}
	case o.ConfigMap != nil:
		for _, value := range o.ConfigMap.Data {
			size += len(value)
		}
		for _, value := range o.ConfigMap.BinaryData {
			size += len(value)
		}
	}
	return size
}
