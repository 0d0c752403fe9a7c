package model

import (
	"cmp"
	"slices"
)

// AwaitsRestart reports whether podctl stopped a container that must run again, and it has not run since: the pass was
// interrupted, or the start waits for something.
func (o *Observed) AwaitsRestart(name string) bool {
	return AwaitsRestart(o.NewestFirst(), name, o.Memory.PendingRestarts[name])
}

// AwaitsRestart reports whether the newest record of a name that has ever run is the one that was stopped to run again.
func AwaitsRestart(newestFirst []*Container, name, stopped string) bool {
	for _, c := range newestFirst {
		if c.Name == name && c.State != Created {
			return c.ID == stopped && c.State != Running
		}
	}
	return false
}

// SortedSandboxes puts the latest sandbox first: the higher attempt, then the later creation, then the smaller ID
// (kubelet: podSandboxByCreated).
func SortedSandboxes(all []Sandbox) []Sandbox {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Sandbox) int {
		return cmp.Or(
			cmp.Compare(b.Attempt, a.Attempt),
			b.CreatedAt.Compare(a.CreatedAt),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return sorted
}

// NewestFirst puts containers that were created later first. Containers with one name are in the order of their
// sandboxes and attempts, so that a clock that was set back does not change it: if the wrong record seemed to be the
// latest, its container would be started beside a running one. For the same reason a replacement that an interrupted
// pass created and did not start comes after the container that it was to replace.
func (o *Observed) NewestFirst() []*Container {
	sorted, byName := make([]*Container, len(o.Containers)), map[string][]*Container{}
	for i := range o.Containers {
		sorted[i] = &o.Containers[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Container) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range sorted {
		byName[c.Name] = append(byName[c.Name], c)
	}
	age, replacement := map[string]int{}, o.replacements()
	for i, s := range SortedSandboxes(o.Sandboxes) {
		age[s.ID] = i - len(o.Sandboxes)
	}
	for _, records := range byName {
		slices.SortStableFunc(records, func(a, b *Container) int {
			return cmp.Or(
				cmp.Compare(age[a.SandboxID], age[b.SandboxID]),
				cmp.Compare(replacement[a.ID], replacement[b.ID]),
				cmp.Compare(b.RestartCount, a.RestartCount),
			)
		})
	}
	for i, c := range sorted {
		sorted[i], byName[c.Name] = byName[c.Name][0], byName[c.Name][1:]
	}
	return sorted
}

// replacements has a one for each record that was created beside a running container of the same name.
func (o *Observed) replacements() map[string]int {
	type place struct{ sandbox, name string }
	running, ones := map[place]bool{}, map[string]int{}
	for i := range o.Containers {
		c := &o.Containers[i]
		running[place{c.SandboxID, c.Name}] = running[place{c.SandboxID, c.Name}] || c.State == Running
	}
	for i := range o.Containers {
		if c := &o.Containers[i]; c.State == Created && running[place{c.SandboxID, c.Name}] {
			ones[c.ID] = 1
		}
	}
	return ones
}

// Newest returns the latest record that matches; nil if there is none.
func (o *Observed) Newest(match func(*Container) bool) *Container {
	for _, c := range o.NewestFirst() {
		if match(c) {
			return c
		}
	}
	return nil
}
