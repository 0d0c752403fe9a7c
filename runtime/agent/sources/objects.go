package sources

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/podspec"
)

// objects are those that a source wants stored. What goes missing lingers as pods do.
type objects map[key]*object

// object is one object that is wanted.
type object struct {
	said *podspec.Object

	absence
}

func keyOfObject(o *podspec.Object) key { return key{o.Kind(), o.Meta().Namespace, o.Meta().Name} }

// take takes the objects that the texts have now. Those of damaged texts stay as they were.
func (os objects) take(now time.Time, found []*podspec.Object, damaged map[string]bool) {
	here := map[key]bool{}
	for _, o := range found {
		if damaged[o.Source] {
			continue
		}
		name := keyOfObject(o)
		here[name] = true
		if before := os[name]; before != nil && equality.Semantic.DeepEqual(before.said, o) {
			o = before.said
		}
		os[name] = &object{said: o}
	}
	for name, o := range os {
		switch {
		case here[name]:
		case damaged[o.said.Source]:
			o.stay()
		default:
			o.leave(now)
		}
	}
}

// all are the objects, by kind, namespace and name.
func (os objects) all() []*podspec.Object {
	var all []*podspec.Object
	for _, o := range os {
		all = append(all, o.said)
	}
	slices.SortFunc(all, func(a, b *podspec.Object) int {
		return cmp.Or(cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a.Meta().Namespace, b.Meta().Namespace), cmp.Compare(a.Meta().Name, b.Meta().Name))
	})
	return all
}
