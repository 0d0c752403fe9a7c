package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// A start that was cut off keeps its container busy for some seconds: containerd
// cleans up after it and refuses to remove it meanwhile.
const (
	busyTimeout = 15 * time.Second
	busyPause   = 100 * time.Millisecond
)

func (x *execution) removeContainer(ctx context.Context, s *plan.Step) error {
	// Its files first: without the record nobody would know that they are there.
	if err := errors.Join(x.removeLogs(s), x.removeLastWords(s)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), busyTimeout)
	defer cancel()
	if err := x.e.removeRecord(ctx, s.ContainerID); err != nil {
		return err
	}
	// A start that was cut off may have opened its log meanwhile.
	return x.removeLogs(s)
}

// removeRecord removes a container, and waits for one that is still starting, or being
// removed. One that is not there is no error.
func (e *Engine) removeRecord(ctx context.Context, id string) error {
	for {
		_, err := e.client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
		socket := e.client.Endpoint.Socket()
		switch {
		case err == nil:
			return nil
		case isNotFound(err):
			return e.stillListed(ctx, id, err)
		case node.IsStuckTask(err) && socket != "":
			if killErr := node.KillTask(ctx, socket, id); killErr != nil {
				return errors.Join(err, killErr)
			}
		case !node.IsBusy(err):
			return err
		}
		if sleep(ctx, busyPause) != nil {
			return err
		}
	}
}

// stillListed judges a removal that failed as something was not found: what the runtime
// lists on, containers of its own behind it may have lost, and then it removes nothing.
func (e *Engine) stillListed(ctx context.Context, id string, notFound error) error {
	containers, err := e.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: id}})
	if err != nil {
		return err
	}
	sandboxes, err := e.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{Id: id}})
	if err != nil || len(containers.GetContainers())+len(sandboxes.GetItems()) == 0 {
		return err
	}
	return fmt.Errorf("the runtime has lost what is behind a record, and keeps that; once it is restarted this works: %w", notFound)
}

// removeLogs removes the logs that go with a record (kubelet: container garbage collection).
func (x *execution) removeLogs(s *plan.Step) error {
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	remove := func() error {
		return pod.RemoveLogs(x.plan.Pod.Namespace, x.plan.Pod.Name, s.Container, s.ContainerID, s.Attempt)
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

// logIsShared tells that the log of a record that goes is also that of one that stays, or
// of a start of this plan: in a new sandbox attempts may begin anew.
func (x *execution) logIsShared(s *plan.Step) bool {
	starts := slices.ContainsFunc(x.plan.Steps, func(other plan.Step) bool {
		return other.Kind == plan.StartContainer && other.Container == s.Container && other.Attempt == s.Attempt
	})
	return starts || slices.Contains(x.keptAttempts(s.Container), s.Attempt)
}

// removeOlderLogs removes the logs of runs of a container before all that have a record,
// which nobody shows any more: records can be lost, and all of them go when a restart rule
// restarts all containers.
func (x *execution) removeOlderLogs(pod state.Pod, container string) error {
	kept := x.keptAttempts(container)
	if len(kept) == 0 {
		return nil
	}
	return pod.RemoveOlderLogs(x.plan.Pod.Namespace, x.plan.Pod.Name, container, slices.Min(kept))
}

// keptAttempts are the attempts of a container's records that no newer one has made
// superfluous.
func (x *execution) keptAttempts(container string) []uint32 {
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

// removeLastWords removes the file for the termination message of a record that goes.
func (x *execution) removeLastWords(s *plan.Step) error {
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	goes := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		if c.Status.GetId() == s.ContainerID {
			mountedBy(goes, c.Status)
		}
	}
	return pod.RemoveTerminationLogs(s.Container, func(path string) bool { return goes[path] })
}

// removeUnusedLastWords removes the files for termination messages of a container that no
// record has: those of starts that were killed before there was one.
func (x *execution) removeUnusedLastWords(container string) error {
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	used := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		mountedBy(used, c.Status)
	}
	return pod.RemoveTerminationLogs(container, func(path string) bool { return !used[path] })
}

// mountedBy notes what is mounted into a container.
func mountedBy(paths map[string]bool, status *runtimeapi.ContainerStatus) {
	for _, m := range status.GetMounts() {
		paths[m.GetHostPath()] = true
	}
}
