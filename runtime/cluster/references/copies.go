package references

import (
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// readCopies returns the copies of objects that the table does not have yet.
func (r *References) readCopies(keys map[state.ObjectKey]bool) map[state.ObjectKey]object {
	var unknown []state.ObjectKey
	r.mu.Lock()
	for key := range keys {
		if o := r.table.objects[key]; o == nil || !o.known {
			unknown = append(unknown, key)
		}
	}
	r.mu.Unlock()
	copies := map[state.ObjectKey]object{}
	for _, key := range unknown {
		value, known, err := r.settings.Copies.Find(key)
		if err != nil {
			r.settings.Log.Warn("cannot read the copy of an object of the API server", "error", err.Error())
		}
		copies[key] = object{value: value, known: known, size: objects.Size(value), stored: value, isStored: known}
	}
	return copies
}

// keep writes the copy of an object, if it differs from the last one. If that fails, keepAgain tries again.
func (r *References) keep(key state.ObjectKey, value *podspec.Object) {
	r.disk.Lock()
	defer r.disk.Unlock()
	r.mu.Lock()
	o := r.table.objects[key]
	same := o == nil || o.isStored && objects.Same(o.stored, value)
	if same && o != nil {
		o.isPending = false
	}
	r.mu.Unlock()
	if !same {
		r.write(key, value)
	}
}

// write writes the copy of an object. The caller holds disk.
func (r *References) write(key state.ObjectKey, value *podspec.Object) {
	err := r.settings.Copies.Keep(key, value)
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.table.objects[key]
	if o == nil {
		return
	}
	if err == nil {
		o.stored, o.isStored, o.pending, o.isPending = value, true, nil, false
		return
	}
	if !o.isPending {
		// The pods get the object anyway. Only a start without the API server would miss it.
		r.settings.Log.Warn("cannot store the copy of an object of the API server", "error", err.Error())
	}
	o.pending, o.isPending = value, true
}

// keepAgain writes the copies again that could not be written, for example because the disk was full. The next answer
// of the API server may be far off, and an object that cannot change has none.
func (r *References) keepAgain() {
	r.disk.Lock()
	defer r.disk.Unlock()
	failed := map[state.ObjectKey]*podspec.Object{}
	r.mu.Lock()
	for key, o := range r.table.objects {
		if o.isPending {
			failed[key] = o.pending
		}
	}
	r.mu.Unlock()
	for key, value := range failed {
		r.write(key, value)
	}
}

// removeCopies removes the copies of objects that no pod names any more. The caller holds mu.
func (r *References) removeCopies(keys []state.ObjectKey) {
	if len(keys) == 0 {
		return
	}
	r.background(func() {
		r.disk.Lock()
		defer r.disk.Unlock()
		for _, key := range keys {
			if r.settings.Copies.CanExist(key) && !r.isNamed(key) {
				if err := r.settings.Copies.Dir.Remove(key); err != nil {
					r.settings.Log.Warn("cannot remove the copy of an object of the API server", "error", err.Error())
				}
			}
		}
	})
}

func (r *References) isNamed(key state.ObjectKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table.objects[key] != nil
}

// removeLeftovers registers the pods that have a record, and removes copies that no pod names. An agent that was killed
// may have left them.
func (r *References) removeLeftovers() {
	pods, ok := r.settings.Stored()
	r.mu.Lock()
	for _, d := range pods {
		if keys := namedObjects(d); r.table.pods[d.Pod.UID] == nil && len(keys) <= maxObjects {
			r.removeCopies(r.table.register(d.Pod.UID, keys, false))
		}
	}
	r.mu.Unlock()
	if !ok {
		return // A pod with an unreadable record may need its objects.
	}
	keys, err := r.settings.Copies.Dir.List()
	if err != nil {
		r.settings.Log.Warn("cannot list the copies of objects of the API server", "error", err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeCopies(keys)
}
