package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/podctl/podctl/runtime/plan"
)

// remover removes what a pod has no use for any more.
type remover struct{ *subject }

func (x *remover) removeContainer(ctx context.Context, s *plan.Step) error {
	// Its files first: without the record nobody would know that they are there.
	if err := errors.Join(x.removeLogs(s), x.removeTerminationMessage(s)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.client.BusyTime())
	defer cancel()
	if err := x.client.RemoveRecord(ctx, s.ContainerID); err != nil {
		return err
	}
	// A start that was cut off may have opened its log meanwhile.
	return x.removeLogs(s)
}

// removeLogs removes the logs that go with a record (kubelet: container garbage collection).
func (x *remover) removeLogs(s *plan.Step) error {
	remove := func() error {
		return x.logs().Remove(s.Container, s.ContainerID, s.Attempt)
	}
	switch s.Logs {
	case plan.RemoveOwnLogs:
		return remove()
	case plan.RemoveOlderLogs:
		return x.removeOlderLogs(s.Container)
	case plan.RemoveSupersededLogs:
		if !x.logIsShared(s) {
			return errors.Join(x.removeOlderLogs(s.Container), remove())
		}
	case plan.KeepLogs:
	}
	return nil
}

// logIsShared reports whether the log of a record that goes is also that of one that stays, or
// of a start of this plan: in a new sandbox attempts may begin anew.
func (x *remover) logIsShared(s *plan.Step) bool {
	starts := slices.ContainsFunc(x.plan.Steps, func(other plan.Step) bool {
		return other.Kind == plan.StartContainer && other.Container == s.Container && other.Attempt == s.Attempt
	})
	return starts || slices.Contains(x.keptAttempts(s.Container), s.Attempt)
}

// removeOlderLogs removes the logs of runs of a container before all that have a record,
// which nobody shows any more: records can be lost, and all of them go when a restart rule
// restarts all containers.
func (x *remover) removeOlderLogs(container string) error {
	kept := x.keptAttempts(container)
	if len(kept) == 0 {
		return nil
	}
	return x.logs().RemoveOlder(container, slices.Min(kept))
}

// keptAttempts are the attempts of a container's records that no newer one has made
// superfluous.
func (x *remover) keptAttempts(container string) []uint32 {
	superseded := map[string]bool{}
	for i := range x.plan.Steps {
		if s := &x.plan.Steps[i]; s.Logs == plan.RemoveSupersededLogs {
			superseded[s.ContainerID] = true
		}
	}
	var kept []uint32
	for _, c := range x.snapshot.Containers {
		if meta := c.Status.GetMetadata(); meta.GetName() == container && !superseded[c.Status.GetId()] {
			kept = append(kept, meta.GetAttempt())
		}
	}
	return kept
}

// removeTerminationMessage removes the file for the termination message of a record that goes.
func (x *remover) removeTerminationMessage(s *plan.Step) error {
	goes := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		if c.Status.GetId() == s.ContainerID {
			addMounted(goes, c.Status)
		}
	}
	return x.pod.TerminationLogs(s.Container).Remove(func(path string) bool { return goes[path] })
}
