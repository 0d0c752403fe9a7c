package references

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/fieldpath"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// table records which pods name which objects, and the last content of these.
type table struct {
	objects map[state.ObjectKey]*object
	pods    map[types.UID]*user
}

// user is a pod that names objects.
type user struct {
	// keys are the objects that the pod names; the value is set for those in a volume.
	keys map[state.ObjectKey]bool
	// live is set while the pod may need the objects again: its passes start watches, and changes wake it.
	live bool
	// reading counts the passes that are about to read the objects. They see a change without being woken.
	reading int
}

// object is an object that at least one pod names.
type object struct {
	users map[types.UID]*user
	// value is the last known object; nil if there is none. It is valid if known is set.
	value *podspec.Object
	known bool
	// size is the size of the value as JSON, in bytes.
	size int
	// stored is the copy on disk, if isStored is set.
	stored   *podspec.Object
	isStored bool
	// pending is the value whose copy could not be written, if isPending is set.
	pending   *podspec.Object
	isPending bool
	// failure is the last error of the watch. It is empty after an answer.
	failure string
	// watch is the running watch. It is nil if none runs.
	watch *watch
	// used is when a pass last used the object.
	used time.Time
}

// watch is one watch of an object.
type watch struct {
	// begun is its start. answered is set once the API server has answered.
	begun    time.Time
	answered bool
	// news is closed and replaced with each answer and each error.
	news chan struct{}
	// stop ends the watch.
	stop func()
}

// namedObjects returns the objects of the cluster that a pod names; the value is set for those in a volume.
func namedObjects(d *podspec.Desired) map[state.ObjectKey]bool {
	keys := map[state.ObjectKey]bool{}
	for _, name := range podspec.ReferredObjects(d.Pod) {
		if objects.InCluster(name.Kind) {
			keys[objects.CopyKey(d.Pod, name)] = false
		}
	}
	for i := range d.Pod.Spec.Volumes {
		for _, r := range podspec.VolumeReferences(&d.Pod.Spec.Volumes[i], fieldpath.Index("spec.volumes", i)) {
			keys[objects.CopyKey(d.Pod, podspec.ObjectName{Kind: r.Kind, Name: r.Name})] = true
		}
	}
	for key := range keys {
		keys[key] = keys[key] || key.Kind == podspec.KindClaim // claims are only in volumes
	}
	return keys
}

// register records the objects that a pod names. It returns those that no pod names any more.
func (t *table) register(uid types.UID, keys map[state.ObjectKey]bool, live bool) (unused []state.ObjectKey) {
	u := t.pods[uid]
	if u == nil {
		u = &user{}
		t.pods[uid] = u
	}
	before := u.keys
	u.keys, u.live = keys, live
	for key := range keys {
		o := t.objects[key]
		if o == nil {
			o = &object{users: map[types.UID]*user{}}
			t.objects[key] = o
		}
		o.users[uid] = u
	}
	for key := range before {
		if _, still := keys[key]; !still {
			unused = append(unused, t.drop(uid, key)...)
		}
	}
	return unused
}

// forget removes a pod that is gone. It returns the objects that no pod names any more.
func (t *table) forget(uid types.UID) (unused []state.ObjectKey) {
	u := t.pods[uid]
	if u == nil {
		return nil
	}
	delete(t.pods, uid)
	for key := range u.keys {
		unused = append(unused, t.drop(uid, key)...)
	}
	return unused
}

// drop removes a pod from the users of an object.
func (t *table) drop(uid types.UID, key state.ObjectKey) (unused []state.ObjectKey) {
	o := t.objects[key]
	delete(o.users, uid)
	if len(o.users) > 0 {
		return nil
	}
	o.end()
	delete(t.objects, key)
	return []state.ObjectKey{key}
}

// release records that a pod has ended: it does not need its objects again.
func (t *table) release(uid types.UID) {
	u := t.pods[uid]
	if u == nil {
		return
	}
	u.live = false
	for key := range u.keys {
		if o := t.objects[key]; !o.isLive() {
			o.end()
		}
	}
}

// endIdle ends the watches of objects that no volume of a live pod has, and that no pass has used for a time. An
// environment is read only when a container starts.
func (t *table) endIdle(now time.Time, idle time.Duration) {
	for key, o := range t.objects {
		inVolume := false
		for _, u := range o.users {
			inVolume = inVolume || u.live && u.keys[key]
		}
		if !inVolume && o.watch != nil && o.watch.answered && now.Sub(o.used) > idle {
			o.end()
		}
	}
}

// set records an answer of the API server. It returns the pods to wake: those that have a changed object in a volume,
// and those that wait for an object that was missing or unknown.
func (t *table) set(key state.ObjectKey, value *podspec.Object, size int) (wake []types.UID) {
	o := t.objects[key]
	before, wasKnown := o.value, o.known
	o.value, o.known, o.size, o.failure = value, true, size, ""
	if wasKnown && objects.Same(before, value) {
		return nil
	}
	waited := !wasKnown || before == nil
	for _, uid := range slices.Sorted(maps.Keys(o.users)) {
		if u := o.users[uid]; u.live && u.reading == 0 && (waited || u.keys[key]) {
			wake = append(wake, uid)
		}
	}
	return wake
}

func (o *object) isLive() bool {
	for _, u := range o.users {
		if u.live {
			return true
		}
	}
	return false
}

// isFinal reports whether the object cannot change any more. A pod keeps the volume that its claim was bound to.
func (o *object) isFinal() bool {
	switch {
	case !o.known || o.value == nil:
		return false
	case o.value.Claim != nil:
		return o.value.Unusable == nil
	case o.value.Secret != nil:
		return o.value.Secret.Immutable != nil && *o.value.Secret.Immutable
	}
	return o.value.ConfigMap.Immutable != nil && *o.value.ConfigMap.Immutable
}

// end ends the watch.
func (o *object) end() {
	if o.watch == nil {
		return
	}
	o.watch.stop()
	close(o.watch.news)
	o.watch = nil
}

// notify wakes the passes that wait for the watch.
func (w *watch) notify() {
	close(w.news)
	w.news = make(chan struct{})
}

// wait returns a channel that is closed with the next result, if a pass should wait for it. A pass waits for the first
// answer. If it has an earlier value, it does not wait once the watch has failed, or has run longer than the limit.
func (o *object) wait(now time.Time, limit time.Duration) <-chan struct{} {
	switch {
	case o.watch == nil || o.watch.answered:
		return nil
	case o.known && (o.failure != "" || now.Sub(o.watch.begun) >= limit):
		return nil
	}
	return o.watch.news
}
