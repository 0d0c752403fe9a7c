package owner

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// Kinds are the kinds of resources that a ledger decides about.
type Kinds int

const (
	// Pods are the pods of sources.
	Pods Kinds = iota
	// Others are the workloads and objects of sources.
	Others
)

// Ledger holds the wanted resources of all sources.
type Ledger struct {
	// Kinds are the kinds that the ledger decides about.
	Kinds Kinds
	// ByHand is set if pods that were applied by hand are kept as well.
	ByHand bool
	// Order has the names of the sources. An earlier one takes precedence. Updates has the last update of each.
	Order   []string
	Updates map[string]sources.Update
	// Takeovers are the resources that were applied by hand and that a source has since provided.
	Takeovers map[ID]sources.Problem

	rules map[string]sources.Rules
	// readAt holds by source when its missing resources became final: when it and all other sources that may want its
	// resources had been read completely for the first time. seen holds the resources that have taken effect since the
	// start.
	readAt map[string]time.Time
	seen   map[ID]bool
}

// New returns a ledger without sources.
func New(kinds Kinds, byHand bool) *Ledger {
	return &Ledger{
		Kinds: kinds, ByHand: byHand, Updates: map[string]sources.Update{}, Takeovers: map[ID]sources.Problem{},
		rules: map[string]sources.Rules{}, readAt: map[string]time.Time{}, seen: map[ID]bool{},
	}
}

// Add adds a source after the earlier ones.
func (l *Ledger) Add(s sources.Source) {
	l.Order = append(l.Order, s.Name())
	l.rules[s.Name()] = s.Rules()
}

// Owns reports whether a source is in the ledger.
func (l *Ledger) Owns(source string) bool { return source != "" && slices.Contains(l.Order, source) }

// ByUID reports whether UIDs identify the pods of a source. Such a pod neither has nor waits for a name. That is true
// of the pods of the API server also in an agent that does not have this source.
func (l *Ledger) ByUID(source string) bool { return l.rules[source].UIDs || source == podspec.OwnerAPI }

// Complete reports whether every source of named resources has been read completely at least once. An API server that
// does not answer must not delay the pods of files.
func (l *Ledger) Complete() bool {
	return !slices.ContainsFunc(l.Order, func(name string) bool { return !l.Updates[name].Complete && !l.ByUID(name) })
}

// settled reports whether a resource of a source is not wanted if no source wants it: every source that may want it has
// been read completely. Only a source that uses UIDs may want its own pods.
func (l *Ledger) settled(source string) bool {
	if l.ByUID(source) {
		return l.Updates[source].Complete
	}
	return l.Complete()
}

// recordReads records when the missing resources of each source become final.
func (l *Ledger) recordReads(now time.Time) {
	for _, name := range l.Order {
		if l.readAt[name].IsZero() && l.settled(name) {
			l.readAt[name] = now
		}
	}
}

// NextDrop returns when Decide will next drop a resource that no source has wanted since the start. It is zero if there
// is no such time.
func (l *Ledger) NextDrop(now time.Time) (next time.Time) {
	for name, readAt := range l.readAt {
		if at := readAt.Add(l.rules[name].DropDelay); at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// Forget drops the state of a resource that is gone.
func (l *Ledger) Forget(id ID) {
	delete(l.seen, id)
	delete(l.Takeovers, id)
}

// Grace returns the grace period in seconds that a source has set when it began to delete a pod. The source may have
// finished the deletion since. Grace returns nil if there is none.
func (l *Ledger) Grace(uid types.UID) *int64 {
	for _, name := range l.Order {
		if grace, deleted := l.Updates[name].Ending[uid]; deleted {
			return &grace
		}
	}
	return nil
}

// claim is a resource that a source wants.
type claim struct {
	Resource
	// by is the source of the update. rank is the position of the source of the pod or of its workload.
	by   string
	rank int
	// byUID is set if the UID alone identifies the pod.
	byUID bool
	// grace is the grace period of a pod that the source is deleting. It is nil for other pods.
	grace *int64
}

// claims returns the wanted resources in order of precedence: by source, and for pods then by the name of the text.
func (l *Ledger) claims() (all []claim) {
	for i, name := range l.Order {
		u := l.Updates[name]
		for _, t := range l.resources(&u) {
			c := claim{Resource: t, by: name, rank: i}
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
	c.byUID = l.ByUID(c.by)
	if rank := slices.Index(l.Order, u.WorkloadSources[c.uid]); rank >= 0 {
		c.rank = rank
	}
	if grace, ending := u.Ending[c.uid]; ending {
		c.grace = &grace
	}
}

// resources returns the resources of an update, objects before workloads, because containers need the objects when they
// start.
func (l *Ledger) resources(u *sources.Update) (all []Resource) {
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

// mustWait reports whether a claim must wait: the source of the stored resource in its place takes precedence, and may
// still want it. The source of workloads always takes precedence, because any source may have provided the workload.
func (l *Ledger) mustWait(c *claim, stored *Record) bool {
	if stored == nil || stored.Owner == c.by {
		return false
	}
	i := slices.Index(l.Order, stored.Owner)
	return i >= 0 && (i < c.rank || stored.Owner == model.OwnerWorkloads) && l.mayBeWanted(&stored.Resource)
}

// mayBeWanted reports whether the source of a stored resource may still want it, because the source, or the text of the
// resource, could not be read.
func (l *Ledger) mayBeWanted(t *Resource) bool {
	u, text := l.Updates[t.Owner], t.File
	if l.ByUID(t.Owner) {
		text = string(t.uid)
	}
	return !u.Complete || slices.Contains(u.Unread, text)
}

// ends returns the grace period of a stored pod that ends: its end has begun, or its source deletes it and has no
// usable version of it. It returns nil for other pods.
func (l *Ledger) ends(r *Record) *int64 {
	if r.Ends != nil || r.Pod == nil || !l.ByUID(r.Owner) {
		return r.Ends
	}
	if grace, ending := l.Updates[r.Owner].Ending[r.uid]; ending {
		return &grace
	}
	return nil
}

// Action is what happens to a stored resource that no source wants.
type Action int

const (
	// Keep means that the resource is kept as it is stored.
	Keep Action = iota
	// Delete means that the resource is deleted.
	Delete
	// Ignore means that the resource is neither kept nor deleted, because no source provided it.
	Ignore
)

// ActionFor decides what happens to a stored resource that no source wants.
func (l *Ledger) ActionFor(now time.Time, r *Record) Action {
	switch {
	case r.Deleting:
		return Delete
	case !l.Owns(r.Owner):
		if l.ByHand {
			return Keep
		}
		return Ignore
	case !l.settled(r.Owner) || l.mayBeWanted(&r.Resource) || l.inDropDelay(now, &r.Resource):
		return Keep
	}
	return Delete
}

// inDropDelay reports whether a resource of an earlier agent may come back soon. For a resource that this agent has
// seen, the source has already applied its delay.
func (l *Ledger) inDropDelay(now time.Time, t *Resource) bool {
	return !l.seen[t.ID()] && now.Before(l.readAt[t.Owner].Add(l.rules[t.Owner].DropDelay))
}

// recordOwner records that a claim takes effect in the place of a stored resource.
func (l *Ledger) recordOwner(now time.Time, c *claim, stored *Record) {
	id := c.ID()
	l.seen[id] = true
	// The pod of a workload belongs to the workload, whether a source or a user applied the workload.
	if stored == nil || stored.Deleting || stored.Owner != "" || c.Owner == model.OwnerWorkloads {
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
