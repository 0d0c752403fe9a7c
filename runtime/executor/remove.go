package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// remover removes what a pod has no use for any more.
type remover struct {
	*subject
	client  *cri.Client
	cgroups cgroup.Groups
	// garbage has the claims of other pods.
	garbage *gc.Collector
	rotator *gc.Rotator
	now     func() time.Time
	report  *reporter
	// refuse notes what podctl does not do.
	refuse func(*plan.Step, error)
	// volumesToo removes volumes that outlive their pod.
	volumesToo bool
}

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
	pod := x.pod
	remove := func() error {
		return pod.Logs(x.plan.Pod.Namespace, x.plan.Pod.Name).Remove(s.Container, s.ContainerID, s.Attempt)
	}
	switch s.Logs {
	case plan.RemoveOwnLogs:
		return remove()
	case plan.RemoveOlderLogs:
		return x.removeOlderLogs(pod, s.Container)
	case plan.RemoveSupersededLogs:
		if !x.logIsShared(s) {
			return errors.Join(x.removeOlderLogs(pod, s.Container), remove())
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
func (x *remover) removeOlderLogs(pod state.Pod, container string) error {
	kept := x.keptAttempts(container)
	if len(kept) == 0 {
		return nil
	}
	return pod.Logs(x.plan.Pod.Namespace, x.plan.Pod.Name).RemoveOlder(container, slices.Min(kept))
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
	pod := x.pod
	goes := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		if c.Status.GetId() == s.ContainerID {
			addMounted(goes, c.Status)
		}
	}
	return pod.TerminationLogs(s.Container).Remove(func(path string) bool { return goes[path] })
}
