package sources

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// want is an object that a source wants. Exactly one of its first three fields is set.
type want struct {
	pod      *podspec.Desired
	workload *podspec.Workload
	object   *podspec.Object
	// missing is when the object was first missing in the texts. It is zero while a text has it, or while that is
	// unknown.
	missing time.Time
}

// key names a wanted object. The kind of pods is empty.
type key struct{ kind, namespace, name string }

func (k key) compare(other key) int {
	return cmp.Or(
		cmp.Compare(k.kind, other.kind),
		cmp.Compare(k.namespace, other.namespace),
		cmp.Compare(k.name, other.name))
}

// identify returns the name of the object, its text, and the UID of the pod or of the workload's first pod.
func (w *want) identify() (name key, source string, uid types.UID) {
	switch {
	case w.pod != nil:
		return key{namespace: w.pod.Pod.Namespace, name: w.pod.Pod.Name}, w.pod.Source, w.pod.Pod.UID
	case w.workload != nil:
		meta, template := w.workload.Meta(), w.workload.Template
		return key{w.workload.Kind(), meta.Namespace, meta.Name}, template.Source, template.Pod.UID
	}
	meta := w.object.Meta()
	return key{w.object.Kind(), meta.Namespace, meta.Name}, w.object.Source, ""
}

// keepPointer keeps the pointer of an unchanged object.
func (w *want) keepPointer(before *want) {
	switch {
	case w.object != nil:
		if equality.Semantic.DeepEqual(before.object, w.object) {
			w.object = before.object
		}
	case w.workload != nil:
		template := before.workload.Template
		if !isSame(template, w.workload.Template) {
			return
		}
		w.workload.Template = template
		// The templates are equal, so they are left out of the comparison.
		one, other := *before.workload, *w.workload
		if one.Template, other.Template = nil, nil; equality.Semantic.DeepEqual(one, other) {
			w.workload = before.workload
		}
	case isSame(before.pod, w.pod):
		w.pod = before.pod
	}
}

// isSame reports whether a pod is unchanged.
func isSame(a, b *podspec.Desired) bool {
	return a == b || a.Source == b.Source && a.WrittenUID == b.WrittenUID &&
		slices.Equal(a.Shared, b.Shared) && a.SameAs(b)
}

// wants are the wanted pods, workloads or objects of a source. A missing object stays wanted for a while, because files
// are renamed and directories are replaced.
type wants map[key]*want

// set sets the wanted objects from the current texts. Objects of damaged texts are unchanged.
func (ws wants) set(now time.Time, found []*want, damaged map[string]bool) {
	uids, here := map[types.UID]bool{}, map[key]bool{}
	for _, w := range found {
		name, source, uid := w.identify()
		if damaged[source] {
			continue
		}
		if before := ws[name]; before != nil {
			w.keepPointer(before)
		}
		ws[name], here[name], uids[uid] = w, true, uid != ""
	}
	for name, w := range ws {
		_, source, uid := w.identify()
		switch {
		case here[name]:
		case uids[uid]:
			delete(ws, name)
		case damaged[source]:
			w.missing = time.Time{}
		default:
			w.missing = model.Earlier(w.missing, now)
		}
	}
}

// restartMissing restarts the time of missing objects after a failure of the source.
func (ws wants) restartMissing(failed, now time.Time) {
	for _, w := range ws {
		w.missing = restartedAt(w.missing, failed, now)
	}
}

// expire drops the objects that have been missing long enough. It returns when the next will be dropped.
func (ws wants) expire(now time.Time) (again time.Time) {
	for name, w := range ws {
		switch over := w.missing.Add(DropDelay); {
		case w.missing.IsZero():
		case over.After(now):
			again = model.Earlier(again, over)
		default:
			delete(ws, name)
		}
	}
	return again
}

// sorted returns all by kind, namespace and name.
func (ws wants) sorted() []*want {
	all := make([]*want, 0, len(ws))
	for _, name := range slices.SortedStableFunc(maps.Keys(ws), key.compare) {
		all = append(all, ws[name])
	}
	return all
}
