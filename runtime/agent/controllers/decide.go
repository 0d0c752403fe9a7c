package controllers

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// wishes are what sources want beside pods, and what is stored: all that a decision depends on.
type wishes struct {
	// order are the names of the sources; the first that wants something brings it. updates are what each has said last.
	order   []string
	updates map[string]sources.Update
	// settled is set once it counts that sources do not want what they brought in the life of another agent. Of what they have
	// wanted in this life, which is seen, it always counts.
	settled bool
	seen    map[state.ObjectKey]bool
	stored  []*thing
}

// thing is a workload or an object; one of them is set.
type thing struct {
	workload *podspec.Workload
	object   *podspec.Object
}

func (t *thing) key() state.ObjectKey {
	if t.workload != nil {
		return controller.KeyOf(t.workload)
	}
	return objects.KeyOf(t.object)
}

// keeper is the source that brought it, file the text that it is from.
func (t *thing) keeper() string {
	if t.workload != nil {
		return t.workload.Keeper
	}
	return t.object.Keeper
}

func (t *thing) file() string {
	if t.workload != nil {
		return t.workload.Source
	}
	return t.object.Source
}

// decision is what is to be stored, and what of it no source wants any more.
type decision struct {
	put      []*thing
	remove   []*thing
	problems []sources.Problem
	// takeovers are those of put that were applied by hand.
	takeovers []*thing
}

// decide says what becomes of what is stored.
func (w *wishes) decide() *decision {
	stored := map[state.ObjectKey]*thing{}
	for _, t := range w.stored {
		stored[t.key()] = t
	}
	d, taken := &decision{}, map[state.ObjectKey]*thing{}
	for i, name := range w.order {
		for _, t := range w.of(name) {
			key := t.key()
			if first := taken[key]; first != nil {
				d.problems = append(d.problems, lostTo(t, first))
				continue
			}
			taken[key] = t
			if before := stored[key]; before == nil || !slices.ContainsFunc(w.order[:i], func(other string) bool { return w.maySpeak(other, before) }) {
				d.put = append(d.put, t)
				if before != nil && before.keeper() == "" {
					d.takeovers = append(d.takeovers, t)
				}
			}
		}
	}
	for _, t := range w.stored {
		if taken[t.key()] == nil && w.isUnwanted(t) {
			d.remove = append(d.remove, t)
		}
	}
	return d
}

// of are what a source wants, objects first: what containers find when they start.
func (w *wishes) of(name string) (all []*thing) {
	u := w.updates[name]
	for _, o := range u.Objects {
		all = append(all, &thing{object: o})
	}
	for _, one := range u.Workloads {
		all = append(all, &thing{workload: one})
	}
	return all
}

// maySpeak reports whether a source brought something, and has not said yet whether it still wants it.
func (w *wishes) maySpeak(source string, t *thing) bool {
	u := w.updates[source]
	return t.keeper() == source && (!u.Complete || slices.Contains(u.Unread, t.file()))
}

// isUnwanted reports whether something is to be removed that no source wants: one of them brought it, and all have been read.
func (w *wishes) isUnwanted(t *thing) bool {
	if !slices.Contains(w.order, t.keeper()) || !w.isComplete() || w.maySpeak(t.keeper(), t) {
		return false
	}
	return w.settled || w.seen[t.key()]
}

// isComplete reports whether every source has been read completely at least once.
func (w *wishes) isComplete() bool {
	return !slices.ContainsFunc(w.order, func(name string) bool { return !w.updates[name].Complete })
}

// lostTo is the problem of a manifest of something that another manifest has.
func lostTo(t, first *thing) sources.Problem {
	p := sources.Problem{File: t.file(), Text: fmt.Sprintf("%s: %s is given twice, first in %s", t.file(), nameOf(t), first.file())}
	if first.workload != nil {
		p.Pod = first.workload.Template.Pod.UID
	}
	return p
}

// nameOf is the kind and the name of something, as the API server writes them.
func nameOf(t *thing) string {
	key := t.key()
	return fmt.Sprintf("%s %s/%s", key.Kind, key.Namespace, key.Name)
}
