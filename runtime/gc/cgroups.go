package gc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
)

// removeCgroups removes the cgroup of a pod whose QoS class is unknown.
func (x *Collector) removeCgroups(ctx context.Context, uid types.UID) error {
	// The names of cgroups depend on the runtime's cgroup driver.
	if _, err := x.host.RuntimeFacts(ctx); err != nil {
		return err
	}
	var errs []error
	for _, name := range criconfig.CgroupParents(uid, x.host.Node()) {
		if x.cgroups.Exists(name) {
			errs = append(errs, x.RemoveCgroup(ctx, uid, name))
		}
	}
	return errors.Join(errs...)
}

// RemoveCgroup removes a cgroup of a pod that has ended. It kills remaining processes if the runtime has no container
// of the pod that may run. For example, containerd 1.6 forgets a container that it was creating when it restarted.
func (x *Collector) RemoveCgroup(ctx context.Context, uid types.UID, name string) error {
	err := x.cgroups.Remove(ctx, name)
	if !errors.As(err, new(*cgroup.BusyError)) {
		return err
	}
	socket := strings.TrimPrefix(x.client.Endpoint.Address, "unix://")
	return x.cgroups.Destroy(ctx, name, socket, func() error {
		pods, failed := x.leftoversByPod(ctx, map[string]string{criconfig.LabelPodUID: string(uid)})
		if failed != nil || pods[uid] == nil {
			return failed
		}
		return pods[uid].checkEnded()
	})
}

// checkEnded returns an error if a sandbox or a container of the pod may run.
func (l *leftovers) checkEnded() error {
	for _, s := range l.sandboxes {
		if s.GetState() != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
			return fmt.Errorf("sandbox %s of the pod may run", s.GetId())
		}
	}
	for _, c := range l.containers {
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
			return fmt.Errorf("container %s of the pod may run", c.GetId())
		}
	}
	return nil
}
