package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/podctl/podctl/runtime/plan"
)

// remover removes records, volumes, cgroups and logs of a pod.
type remover struct{ *subject }

func (x *remover) removeContainer(ctx context.Context, s *plan.Step) error {
	// The files are removed first, because without the record podctl could not find them.
	if err := errors.Join(x.removeLogs(s), x.removeTerminationMessage(s)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.client.BusyTime())
	defer cancel()
	if err := x.client.RemoveRecord(ctx, s.ContainerID); err != nil {
		return err
	}
	// An interrupted start may have opened its log in the meantime.
	return x.removeLogs(s)
}

// removeLogs removes the logs that the step selects (kubelet: container garbage collection).
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

// logIsShared reports whether the log of a removed record also belongs to one that stays, or to a start of this plan.
// Attempts may start at zero again in a new sandbox.
func (x *remover) logIsShared(s *plan.Step) bool {
	starts := slices.ContainsFunc(x.plan.Steps, func(other plan.Step) bool {
		return other.Kind == plan.StartContainer && other.Container == s.Container && other.Attempt == s.Attempt
	})
	return starts || slices.Contains(x.keptAttempts(s.Container), s.Attempt)
}

// removeOlderLogs removes the logs of a container's runs before all records. No command shows them any more: records
// can be lost, and all are removed when a restart rule restarts all containers.
func (x *remover) removeOlderLogs(container string) error {
	kept := x.keptAttempts(container)
	if len(kept) == 0 {
		return nil
	}
	return x.logs().RemoveOlder(container, slices.Min(kept))
}

// keptAttempts returns the attempts of a container's records that no newer one has replaced.
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

// removeTerminationMessage removes the termination message file of a removed record.
func (x *remover) removeTerminationMessage(s *plan.Step) error {
	goes := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		if c.Status.GetId() == s.ContainerID {
			addMounted(goes, c.Status)
		}
	}
	return x.pod.TerminationLogs(s.Container).Remove(func(path string) bool { return goes[path] })
}
