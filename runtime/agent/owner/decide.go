package owner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// Decision is the result for everything that sources want and everything that is stored.
type Decision struct {
	// Wanted are the resources that take effect. A waiting resource is not among them: the stored resource in its place
	// stays.
	Wanted []Resource
	// Held are pods without effect, because a pod that was applied by hand has their name.
	Held []Held
	// Ending are the pods that their source deletes. Each ends for good, and is deleted once its source does not have
	// it any more.
	Ending []Ending
	// Kept are other stored resources that stay as they are. Deleted are those to delete. The rest is not
	// touched.
	Kept, Deleted []Record
	// Problems are the conflicts of the claims that lost, by source.
	Problems map[string][]sources.Problem
}

// Ending is a pod that ends, and the time in seconds that it has for that.
type Ending struct {
	Pod   *podspec.Desired
	Grace int64
}

// Held is a pod without effect, and the stored pod that has its name.
type Held struct {
	Pod    *podspec.Desired
	Holder Record
}

// Decide decides about everything that sources want and everything that is stored.
func (l *Ledger) Decide(now time.Time, stored []Record) *Decision {
	l.recordReads(now)
	d := &Decision{Problems: map[string][]sources.Problem{}}
	there, taken, decided := l.indexed(stored), map[ID]*claim{}, map[ID]bool{}
	for _, c := range l.claims() {
		if lost := c.reserve(taken); lost != nil {
			d.Problems[c.by] = append(d.Problems[c.by], *lost)
			continue
		}
		if l.mustWait(&c, there.inPlace(&c)) {
			continue
		}
		if holder := l.holder(there, &c); holder != nil {
			d.Held = append(d.Held, Held{Pod: c.Pod, Holder: *holder})
			d.Problems[c.by] = append(d.Problems[c.by], nameInUse(c.Pod, holder))
			continue
		}
		decided[c.ID()] = true
		if grace := c.graceToEnd(there.first(c.ID())); grace != nil {
			d.Ending = append(d.Ending, Ending{Pod: c.Pod, Grace: *grace})
			continue
		}
		d.Wanted = append(d.Wanted, c.Resource)
		l.recordOwner(now, &c, there.first(c.ID()))
	}
	for i := range stored {
		r := &stored[i]
		switch action := l.ActionFor(now, r); {
		case decided[r.ID()]:
		case action == Delete:
			d.Deleted = append(d.Deleted, *r)
		case action == Keep && l.ends(r) != nil:
			d.Ending = append(d.Ending, Ending{Pod: r.Pod, Grace: *l.ends(r)})
		case action == Keep:
			d.Kept = append(d.Kept, *r)
		}
	}
	return d
}

// graceToEnd returns the grace period of a pod that its source deletes, or whose end has begun: nothing can cancel it.
// It returns nil for a pod that runs.
func (c *claim) graceToEnd(stored *Record) *int64 {
	if c.grace == nil && stored != nil && c.byUID {
		return stored.Ends
	}
	return c.grace
}

// reserve reserves the name and UID of a claim. If another claim has one of them, reserve returns the problem.
func (c *claim) reserve(taken map[ID]*claim) *sources.Problem {
	ids := []ID{c.ID()}
	if !c.byUID {
		ids = []ID{c.name, c.ID()}
	}
	for _, id := range ids {
		if first := taken[id]; first != nil {
			return new(c.duplicateOf(first))
		}
	}
	for _, id := range ids {
		taken[id] = c
	}
	return nil
}

// duplicateOf returns the problem of a claim that loses to another.
func (c *claim) duplicateOf(first *claim) sources.Problem {
	what := c.String()
	if c.name != first.name {
		what = fmt.Sprintf("the uid %q of %s", c.uid, what)
	}
	text := fmt.Sprintf("%s: %s is given twice, first in %s", c.File, what, first.File)
	return sources.Problem{File: c.File, Pod: first.uid, Text: text}
}

// nameInUse returns the problem of a pod whose name is used by a pod that was applied by hand.
func nameInUse(d *podspec.Desired, holder *Record) sources.Problem {
	text := fmt.Sprintf("pod %s is not created: a pod that was applied by hand has its name, with uid %s; "+
		"to remove that pod, run `podctl delete %s`", model.RefOf(d.Pod), holder.uid, holder.uid)
	return sources.Problem{File: d.Source, Pod: holder.uid, Text: text}
}

// Holder returns the stored pod that prevents a pod of a source from using its name. Such a pod was applied by hand,
// and has another UID or belongs to another workload. Holder returns nil if there is none. The agent does not end a pod
// that its sources did not provide.
func (l *Ledger) Holder(stored []Record, d *podspec.Desired) *Record {
	return l.holder(l.indexed(stored), &claim{Resource: Pod(d), byUID: l.ByUID(d.Owner)})
}

func (l *Ledger) holder(there index, c *claim) *Record {
	if c.Pod == nil || c.byUID {
		return nil
	}
	for _, r := range there[c.name] {
		if (r.ID() != c.ID() || !sameOwner(r.Pod.Pod, c.Pod.Pod)) && !r.Deleting && !l.Owns(r.Owner) {
			return r
		}
	}
	return nil
}

func sameOwner(a, b *v1.Pod) bool {
	one, other := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return one == other || one != nil && other != nil && one.Kind == other.Kind && one.Name == other.Name
}

// index finds stored resources by name and by ID. Resources that are not being deleted come first, then the order is by
// UID. A pod that its UID identifies has no entry for its name.
type index map[ID][]*Record

func (l *Ledger) indexed(stored []Record) index {
	there := index{}
	for i := range stored {
		r := &stored[i]
		if !l.ByUID(r.Owner) {
			there[r.name] = append(there[r.name], r)
		}
		if r.Pod != nil {
			there[r.ID()] = append(there[r.ID()], r)
		}
	}
	for _, all := range there {
		slices.SortFunc(all, func(a, b *Record) int {
			switch {
			case a.Deleting == b.Deleting:
				return cmp.Compare(a.uid, b.uid)
			case b.Deleting:
				return -1
			}
			return 1
		})
	}
	return there
}

// first returns the first stored resource with a name or an ID. It returns nil if there is none.
func (there index) first(id ID) *Record {
	if all := there[id]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// inPlace returns the stored resource in the place of a claim: with its UID if UIDs identify it, else with its name.
func (there index) inPlace(c *claim) *Record {
	if c.byUID {
		return there.first(c.ID())
	}
	return there.first(c.name)
}
