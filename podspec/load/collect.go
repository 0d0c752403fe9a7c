package load

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
)

// collect gives a pod the objects it refers to. It returns the names of those that the caller stores.
func (a *assembly) collect(d *podspec.Desired, used map[*object]bool) (shared []podspec.ObjectName) {
	wanted := podspec.ReferredObjects(d.Pod)
	for _, o := range a.objects {
		if o.pod != nil || o.workload != nil || o.duplicate || o.meta.Namespace != d.Pod.Namespace || !slices.Contains(wanted, podspec.ObjectName{Kind: o.report.Kind, Name: o.meta.Name}) {
			continue
		}
		used[o] = true
		if o.claim != nil && o.bound == nil {
			a.notes = append(a.notes, o.report.Note(d.Pod.Namespace+"/"+d.Pod.Name, "spec", "A claim is a directory of podctl's own: its size, class and access modes have no effect."))
			continue
		}
		d.Objects.Put(o.object())
		if a.store && !o.beside {
			shared = append(shared, podspec.ObjectName{Kind: o.report.Kind, Name: o.meta.Name})
		}
	}
	return shared
}

// complete gives a pod the stored objects that its manifest lacks, and notes those that the
// manifest itself brings as well.
func (a *assembly) complete(o *object, d *podspec.Desired) *podspec.Desired {
	if a.stored == nil || a.failed != nil {
		return d
	}
	with, hidden, err := a.stored(d)
	if err != nil {
		a.failed = fmt.Errorf("pod %s: %w", o.key(), err)
		return d
	}
	for _, name := range hidden {
		at := a.names[name.Kind+" "+d.Pod.Namespace+"/"+name.Name]
		if a.store && !at.beside {
			continue // It is stored in the place of that one.
		}
		a.notes = append(a.notes, at.report.Note(o.key(), "metadata.name", fmt.Sprintf("pod %s uses this one, and not the stored %s of that name", o.key(), name.Kind)))
	}
	return with
}
