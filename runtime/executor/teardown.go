package executor

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

func (x *remover) removeCgroup(ctx context.Context) error {
	var errs []error
	own := ""
	if applied := x.applied; applied != nil {
		own = criconfig.CgroupParent(applied.Pod, x.node())
	}
	for _, name := range criconfig.CgroupParents(x.plan.Pod.UID, x.node()) {
		// The pod's own cgroup may be incomplete and is removed in any case.
		if name == own || x.cgroups.Exists(name) {
			errs = append(errs, x.garbage.RemoveCgroup(ctx, x.plan.Pod.UID, name))
		}
	}
	return errors.Join(errs...)
}

func (x *remover) removeVolumes(ctx context.Context, s *plan.Step) error {
	if x.desired != nil && x.plan.Eviction == nil {
		// The records of the pod stay, and with them its termination messages.
		return volume.Reclaim(x.pod)
	}
	err := volume.RemoveAll(x.pod)
	if err != nil || !x.opts.RemoveVolumes || x.applied == nil {
		return err
	}
	refused, err := x.removeClaims(ctx)
	if refused != nil {
		x.schedule.refuse(s, refused)
	}
	return err
}

func (x *remover) archiveLogs() error {
	ref := x.plan.Pod
	err := x.pod.Logs(ref.Namespace, ref.Name).Archive(x.now())
	if errors.Is(err, unix.ENOSPC) {
		x.report.warn(fmt.Sprintf("%v; the logs are removed instead", err))
		return x.pod.Logs(ref.Namespace, ref.Name).RemoveAll()
	}
	return err
}

// removeClaims removes the claims of the pod that no other pod uses. Claims whose names are refused stay; the first
// returned error is about them.
func (x *remover) removeClaims(ctx context.Context) (refused, err error) {
	return volume.RemoveClaims(ctx, x.volumes(x.applied), func(name string) bool {
		users, err := x.garbage.ClaimUsers(ctx, x.plan.Pod)
		claim := state.Claim{Namespace: x.plan.Pod.Namespace, Name: name}
		user, used := users.Of(claim)
		switch {
		case err != nil:
			// The callback is called only for a claim with a directory.
			dir, _ := users.Dir(claim)
			x.report.warn(fmt.Sprintf(
				"the claim %s is kept: %v; once no pod uses it, remove %s by hand", name, err, dir))
		case used:
			x.report.warn(fmt.Sprintf("the claim %s is kept: pod %s uses it", name, user))
		}
		return err != nil || used
	})
}
