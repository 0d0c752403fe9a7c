package owner

import (
	"cmp"
	"slices"
	"time"

	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// Kinds are the kinds of things that a ledger decides about.
type Kinds int

const (
	// Pods are the pods of sources.
	Pods Kinds = iota
	// Others are the workloads and objects of sources.
	Others
)

// Ledger holds the wanted things of all sources.
type Ledger struct {
	// Kinds are the kinds that the ledger decides about.
	Kinds Kinds
	// ByHand is set if pods that were applied by hand are kept as well.
	ByHand bool
	// Order has the names of the sources. An earlier one takes precedence. Updates has the last update of each.
	Order   []string
	Updates map[string]sources.Update
	// Takeovers are the things that were applied by hand and that a source has since provided.
	Takeovers map[ID]sources.Problem

	rules map[string]sources.Rules
	// readAt is when every source had been read completely for the first time. seen holds the things that have taken
	// effect since the start.
	readAt time.Time
	seen   map[ID]bool
}

// New returns a ledger without sources.
func New(kinds Kinds, byHand bool) *Ledger {
	return &Ledger{
		Kinds: kinds, ByHand: byHand, Updates: map[string]sources.Update{}, Takeovers: map[ID]sources.Problem{},
		rules: map[string]sources.Rules{}, seen: map[ID]bool{},
	}
}

// Add adds a source after the earlier ones.
func (l *Ledger) Add(s sources.Source) {
	l.Order = append(l.Order, s.Name())
	l.rules[s.Name()] = s.Rules()
}

// Owns reports whether a source is in the ledger.
func (l *Ledger) Owns(source string) bool { return source != "" && slices.Contains(l.Order, source) }

// Complete reports whether every source has been read completely at least once.
func (l *Ledger) Complete() bool {
	return !slices.ContainsFunc(l.Order, func(name string) bool { return !l.Updates[name].Complete })
}

// Settles returns when Decide will next drop a thing that no source has wanted since the start. It is zero if there is
// no such time.
func (l *Ledger) Settles(now time.Time) (next time.Time) {
	if l.readAt.IsZero() {
		return next
	}
	for _, r := range l.rules {
		if at := l.readAt.Add(r.Lingers); at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// Forget drops the state of a thing that is gone.
func (l *Ledger) Forget(id ID) {
	delete(l.seen, id)
	delete(l.Takeovers, id)
}

// claim is a thing that a source wants.
type claim struct {
	Thing
	// by is the source of the update. rank is the position of the source of the pod or of its workload.
	by   string
	rank int
	// byUID is set if the UID alone identifies the pod.
	byUID bool
	// grace is the grace period of a pod that the source is deleting. It is nil for other pods.
	grace *int64
}

// claims returns the wanted things in order of precedence: by source, and for pods then by the name of the text.
func (l *Ledger) claims() (all []claim) {
	for i, name := range l.Order {
		u := l.Updates[name]
		for _, t := range l.things(&u) {
			c := claim{Thing: t, by: name, rank: i}
			if t.Pod != nil {
				l.describe(&c, &u)
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b claim) int {
		if l.Kinds == Others {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.File, b.File))
	})
	return all
}

// describe adds the properties of a pod from an update.
func (l *Ledger) describe(c *claim, u *sources.Update) {
	c.byUID = l.rules[c.by].UIDs
	if rank := slices.Index(l.Order, u.Brought[c.uid]); rank >= 0 {
		c.rank = rank
	}
	if grace, ending := u.Ending[c.uid]; ending {
		c.grace = &grace
	}
}

// things returns the things of an update, objects before workloads, because containers need the objects when they
// start.
func (l *Ledger) things(u *sources.Update) (all []Thing) {
	if l.Kinds == Pods {
		for _, d := range u.Pods {
			all = append(all, Pod(d))
		}
		return all
	}
	for _, o := range u.Objects {
		all = append(all, Object(o))
	}
	for _, w := range u.Workloads {
		all = append(all, Workload(w))
	}
	return all
}

// waits reports whether a claim must wait: the source of the stored thing in its place takes precedence, and may still
// want it. The source of workloads always takes precedence, because any source may have provided the workload.
func (l *Ledger) waits(c *claim, stored *Record) bool {
	if stored == nil || stored.Keeper == c.by {
		return false
	}
	i := slices.Index(l.Order, stored.Keeper)
	return i >= 0 && (i < c.rank || stored.Keeper == model.WorkloadKeeper) && l.unknown(&stored.Thing)
}

// unknown reports whether the source of a stored thing may still want it, because the source, or the text of the thing,
// could not be read.
func (l *Ledger) unknown(t *Thing) bool {
	u := l.Updates[t.Keeper]
	return !u.Complete || slices.Contains(u.Unread, t.File)
}

// Fate is what happens to a stored thing that no source wants.
type Fate int

const (
	// Stays means that the thing is kept as it is stored.
	Stays Fate = iota
	// Ends means that the thing is deleted.
	Ends
	// Left means that the thing is neither kept nor deleted, because no source provided it.
	Left
)

// Fate decides what happens to a stored thing that no source wants.
func (l *Ledger) Fate(now time.Time, r *Record) Fate {
	switch {
	case r.Deleting:
		return Ends
	case !l.Owns(r.Keeper):
		if l.ByHand {
			return Stays
		}
		return Left
	case !l.Complete() || l.unknown(&r.Thing) || l.lingers(now, &r.Thing):
		return Stays
	}
	return Ends
}

// lingers reports whether a thing of an earlier agent may come back soon. For a thing that this agent has seen, the
// source has already applied its delay.
func (l *Ledger) lingers(now time.Time, t *Thing) bool {
	return !l.seen[t.ID()] && now.Before(l.readAt.Add(l.rules[t.Keeper].Lingers))
}

// own records that a claim takes effect in the place of a stored thing.
func (l *Ledger) own(now time.Time, c *claim, stored *Record) {
	id := c.ID()
	l.seen[id] = true
	// The pod of a workload belongs to the workload, whether a source or a user applied the workload.
	if stored == nil || stored.Deleting || stored.Keeper != "" || c.Keeper == model.WorkloadKeeper {
		return
	}
	if _, noted := l.Takeovers[id]; noted {
		return
	}
	what := c.String()
	if c.Pod != nil {
		what = "pod " + model.RefOf(c.Pod.Pod).String()
	}
	l.Takeovers[id] = sources.Takeover(c.File, what, now)
}
