package sources

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Merged is what all sources want together.
type Merged struct {
	// Pods are the pods that are wanted, by namespace and name. Each uid is there once.
	Pods map[types.NamespacedName]*podspec.Desired
	// Waiting are pods that a source wants and that are left as they are: the source that keeps
	// each has precedence, and has not said yet what it wants of it.
	Waiting map[types.NamespacedName]*podspec.Desired
	// Problems are those of all sources, and the pods that several of them want.
	Problems []Problem
	// Complete reports whether every source has been read completely at least once.
	Complete bool

	// updates are those of the sources by name.
	updates map[string]Update
}

// Merge puts the updates of all sources together, in the order of the sources: the first that
// wants a name or a uid wins. before is what Merge made last, and applied finds the manifest of a
// pod that was applied last; nil if there is none.
func Merge(now time.Time, before Merged, updates []Update, applied func(types.NamespacedName) *podspec.Desired) Merged {
	m := Merged{
		Pods: map[types.NamespacedName]*podspec.Desired{}, Waiting: map[types.NamespacedName]*podspec.Desired{},
		Complete: true, updates: map[string]Update{},
	}
	for _, u := range updates {
		m.Complete = m.Complete && u.Complete
		m.updates[u.Source] = u
		m.Problems = append(m.Problems, u.Problems...)
	}
	uids, lost := map[types.UID]*podspec.Desired{}, map[string][]Problem{}
	for _, c := range candidates(updates) {
		d, key := c.pod, keyOf(c.pod)
		switch other := m.winner(key, uids[d.Pod.UID]); {
		case other != nil:
			lost[c.by] = append(lost[c.by], lostTo(d, other))
			continue
		case c.waits(updates, applied):
			m.Waiting[key] = d
		default:
			m.Pods[key] = d
		}
		uids[d.Pod.UID] = d
	}
	for _, u := range updates {
		m.Problems = append(m.Problems, Few(u.Source, lost[u.Source])...)
	}
	Stamp(m.Problems, now, before.Problems)
	return m
}

// candidate is a pod that a source wants.
type candidate struct {
	pod *podspec.Desired
	// rank is the place of the source that brought the pod, or its workload, from the source by.
	rank int
	by   string
}

// candidates are the pods that sources want, those first that come before others: by source, and then by the name of the text.
func candidates(updates []Update) []candidate {
	ranks := make(map[string]int, len(updates))
	for i, u := range updates {
		ranks[u.Source] = i
	}
	var all []candidate
	for i, u := range updates {
		for _, d := range u.Pods {
			c := candidate{pod: d, rank: i, by: u.Source}
			if rank, known := ranks[u.Brought[d.Pod.UID]]; known {
				c.rank = rank
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.pod.Source, b.pod.Source))
	})
	return all
}

// waits reports whether another source may have something that comes before a pod, and has not said so yet: one of a source
// before, or of a workload, which any source may have brought.
func (c candidate) waits(updates []Update, applied func(types.NamespacedName) *podspec.Desired) bool {
	for i, u := range updates {
		before := u.Source != c.by && (i < c.rank || u.Source == model.WorkloadKeeper)
		if before && (!u.Complete || len(u.Unread) > 0) && u.maySpeakOf(applied(keyOf(c.pod))) {
			return true
		}
	}
	return false
}

// winner is the pod before that has a name or a uid already; nil if there is none.
func (m Merged) winner(key types.NamespacedName, sameUID *podspec.Desired) *podspec.Desired {
	switch {
	case m.Pods[key] != nil:
		return m.Pods[key]
	case m.Waiting[key] != nil:
		return m.Waiting[key]
	}
	return sameUID
}

// maySpeakOf reports whether a pod that the source brought may be in what could not be read yet.
func (u Update) maySpeakOf(applied *podspec.Desired) bool {
	return applied != nil && applied.Keeper == u.Source && (!u.Complete || slices.Contains(u.Unread, applied.Source))
}

func lostTo(d, other *podspec.Desired) Problem {
	what := "Pod " + model.RefOf(d.Pod).String()
	if keyOf(d) != keyOf(other) {
		what = fmt.Sprintf("the uid %q of %s", d.Pod.UID, what)
	}
	return Problem{File: d.Source, Pod: other.Pod.UID, Text: fmt.Sprintf("%s: %s is given twice, first in %s", d.Source, what, other.Source)}
}

// Stamp gives problems that have no time the one since when they are, from those before, and
// sorts them.
func Stamp(problems []Problem, now time.Time, before []Problem) {
	for i, p := range problems {
		if !p.Since.IsZero() {
			continue
		}
		problems[i].Since = now
		for _, old := range before {
			if old.File == p.File && old.Text == p.Text {
				problems[i].Since = old.Since
			}
		}
	}
	slices.SortFunc(problems, Problem.compare)
}

// Unwanted reports whether a pod is to be deleted: a source brought it, every source has been
// read, and none wants it. The text that it came from may not be one that cannot be used.
func (m Merged) Unwanted(applied *podspec.Desired) bool {
	u, isSource := m.updates[applied.Keeper]
	if applied.Keeper == "" || !isSource || !m.Complete || u.maySpeakOf(applied) {
		return false
	}
	key := keyOf(applied)
	now := m.Pods[key]
	return m.Waiting[key] == nil && (now == nil || now.Pod.UID != applied.Pod.UID)
}
