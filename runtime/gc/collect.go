package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/podlogs"
	"github.com/podctl/podctl/runtime/state/statedir"
	"github.com/podctl/podctl/runtime/volume"
)

// Collector finds and removes leftovers of podctl.
type Collector struct {
	client  *cri.Client
	layout  state.Layout
	cgroups cgroup.Groups
	now     func() time.Time
	host    *observe.Host
	images  *images.Store
	rotator *Rotator
}

// New returns a Collector.
func New(w observe.World, host *observe.Host, store *images.Store) *Collector {
	return &Collector{
		client:  w.Client,
		layout:  w.Layout,
		cgroups: w.Cgroups,
		now:     w.Now,
		host:    host,
		images:  store,
		rotator: NewRotator(w),
	}
}

// List returns podctl's leftovers that are no longer needed, in the order of their removal. It never includes files of
// other tools or running containers.
func (x *Collector) List(ctx context.Context) ([]Garbage, error) {
	pods, deleted, err := x.survey(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	var found []Garbage
	for _, l := range pods {
		garbage := l.garbage()
		x.addSizes(ctx, l, garbage)
		full, err := x.rotator.fullLogs(ctx, l)
		if err != nil {
			return nil, err
		}
		found = slices.Concat(found, garbage, full)
	}
	return append(found, deleted...), nil
}

// survey returns the leftovers of each pod by uid, without unmanaged pods, and the logs and events of pods deleted
// before a time. A zero time means all.
func (x *Collector) survey(ctx context.Context, deletedBefore time.Time) ([]*leftovers, []Garbage, error) {
	pods, err := x.allLeftovers(ctx)
	if err != nil {
		return nil, nil, err
	}
	logs, err := oldLogs(x.layout, deletedBefore)
	if err != nil {
		return nil, nil, err
	}
	events, err := oldEvents(x.layout, deletedBefore)
	return pods, append(logs, events...), err
}

// allLeftovers returns the leftovers of each pod by uid, without unmanaged pods.
func (x *Collector) allLeftovers(ctx context.Context) ([]*leftovers, error) {
	pods, err := x.leftoversByPod(ctx, nil)
	if err != nil {
		return nil, err
	}
	gone, err := x.layout.Pods().Leftovers()
	if err != nil {
		return nil, err
	}
	for _, uid := range gone {
		if pods[uid] == nil {
			pods[uid] = &leftovers{uid: uid}
		}
	}
	kubelet := x.host.CheckKubelet() != nil
	var all []*leftovers
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		l := pods[uid]
		if l.unmanaged() {
			continue
		}
		l.shared = kubelet
		if err := l.checkDisk(x.layout); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// leftoversByPod returns the sandboxes and containers in the runtime by pod. With a selector there is only one pod.
func (x *Collector) leftoversByPod(ctx context.Context, selector map[string]string) (map[types.UID]*leftovers, error) {
	sandboxes, err := x.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: selector},
	})
	if err != nil {
		return nil, fmt.Errorf("listing sandboxes: %w", err)
	}
	containers, err := x.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing containers: %w", err)
	}
	pods, owner := map[types.UID]*leftovers{}, map[string]types.UID{}
	of := func(uid types.UID) *leftovers {
		if pods[uid] == nil {
			pods[uid] = &leftovers{uid: uid}
		}
		return pods[uid]
	}
	for _, s := range sandboxes.GetItems() {
		if uid := types.UID(s.GetLabels()[criconfig.LabelPodUID]); uid != "" {
			of(uid).sandboxes = append(of(uid).sandboxes, s)
			owner[s.GetId()] = uid
		}
	}
	// Assign containers by their sandbox, not by their labels. An unmanaged container in a pod's sandbox has no labels,
	// and is a reason to keep the sandbox. Labels count if the sandbox is gone.
	wanted, only := selector[criconfig.LabelPodUID]
	for _, c := range containers.GetContainers() {
		uid := owner[c.GetPodSandboxId()]
		if label := c.GetLabels()[criconfig.LabelPodUID]; uid == "" && (!only || label == wanted) {
			uid = types.UID(label)
		}
		if uid != "" {
			of(uid).containers = append(of(uid).containers, c)
		}
	}
	return pods, nil
}

// checkDisk checks which files of the pod exist on disk.
func (l *leftovers) checkDisk(layout state.Layout) (err error) {
	pod := layout.Pod(l.uid)
	if l.checkpoint, err = pod.Checkpoint().Exists(); err != nil {
		return err
	}
	l.dir, err = pod.HasDir()
	return err
}

// oldLogs returns the logs of pods deleted before a time. A zero time means all.
func oldLogs(layout state.Layout, before time.Time) ([]Garbage, error) {
	logs, err := layout.DeletedLogs().List()
	var found []Garbage
	for _, d := range logs {
		if !before.IsZero() && !d.At.Before(before) {
			continue
		}
		found = append(found, Garbage{
			Kind: GarbageLogs, Pod: model.PodRef{Namespace: d.Namespace, Name: d.Name, UID: d.UID}, Path: d.Path,
			Reason: "the pod was deleted", Size: statedir.Size(d.Path),
		})
	}
	return found, err
}

// oldEvents returns the events of pods without a checkpoint that had no event since a time. A zero time means all.
func oldEvents(layout state.Layout, before time.Time) ([]Garbage, error) {
	histories, err := layout.Histories().Before(before)
	var found []Garbage
	for _, h := range histories {
		pod := layout.Pod(h.Pod.UID)
		if known, lookErr := pod.Checkpoint().Exists(); lookErr != nil || known {
			continue
		}
		found = append(found, Garbage{
			Kind:   GarbageEvents,
			Pod:    h.Pod,
			Path:   pod.History().Path(),
			Reason: "the pod was deleted",
			Size:   statedir.Size(pod.History().Path()),
		})
	}
	return found, err
}

// pruneWait limits the wait for a process that works on a pod.
const pruneWait = 5 * time.Second

// ErrNeeded reports that an object is needed again.
var ErrNeeded = errors.New("it is in use again, and was kept")

// Remove removes one piece of garbage. It locks the pod and checks again that it is garbage.
func (x *Collector) Remove(ctx context.Context, g Garbage) error {
	if g.Kind == GarbageClaim {
		return x.removeClaim(ctx, &g)
	}
	return x.removeWithin(ctx, &g, pruneWait)
}

// removeWithin removes a piece of garbage, and waits at most this long for the pod's lock.
func (x *Collector) removeWithin(ctx context.Context, g *Garbage, wait time.Duration) error {
	if g.Kind == GarbageFullLog {
		return x.rotator.rotateFull(ctx, g)
	}
	return locked(ctx, x.layout.Pod(g.Pod.UID), wait, func() error { return x.removeLocked(ctx, g) })
}

// locked calls do with the lock of a pod, and waits at most this long for it.
func locked(ctx context.Context, pod state.Pod, wait time.Duration, do func() error) error {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := pod.Lock(waiting)
	if err != nil {
		return err
	}
	return errors.Join(do(), lock.Unlock())
}

// removeLocked removes a piece of garbage if it still is. The caller holds the pod's lock.
func (x *Collector) removeLocked(ctx context.Context, g *Garbage) error {
	pod := x.layout.Pod(g.Pod.UID)
	switch g.Kind {
	case GarbageLogs:
		return x.layout.DeletedLogs().Remove(podlogs.Log{Path: g.Path})
	case GarbageEvents:
		return removeEvents(pod)
	case GarbageFullLog, GarbageContainer, GarbageSandbox, GarbageFiles, GarbageClaim:
	}
	l, err := x.leftoversOf(ctx, g.Pod.UID)
	if err != nil {
		return err
	}
	still := l.garbage()
	if g.spare {
		still = l.spares()
	}
	if !slices.ContainsFunc(still, g.is) {
		return ErrNeeded
	}
	return x.removeGarbage(ctx, l, g)
}

// removeEvents removes the events of a pod unless it has been applied again.
func removeEvents(pod state.Pod) error {
	if known, err := pod.Checkpoint().Exists(); err != nil || known {
		return errors.Join(err, ErrNeeded)
	}
	return pod.History().Remove()
}

// leftoversOf returns the current leftovers of one pod.
func (x *Collector) leftoversOf(ctx context.Context, uid types.UID) (*leftovers, error) {
	pods, err := x.leftoversByPod(ctx, map[string]string{criconfig.LabelPodUID: string(uid)})
	if err != nil {
		return nil, err
	}
	l := pods[uid]
	if l == nil {
		l = &leftovers{uid: uid}
	}
	l.shared = x.host.CheckKubelet() != nil
	return l, l.checkDisk(x.layout)
}

// removeGarbage removes a piece that was verified to be garbage under the pod's lock.
func (x *Collector) removeGarbage(ctx context.Context, l *leftovers, g *Garbage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.client.Timeout)
	defer cancel()
	pod := x.layout.Pod(g.Pod.UID)
	switch g.Kind {
	case GarbageContainer:
		if err := x.client.RemoveRecord(ctx, g.ID); err != nil || l.sharesLog(g) {
			return err
		}
		return pod.Logs(g.Pod.Namespace, g.Pod.Name).Remove(g.Name, g.ID, g.Attempt)
	case GarbageSandbox:
		return x.removeLostSandbox(ctx, l, g)
	case GarbageFiles:
		if err := errors.Join(volume.RemoveAll(pod), x.removeCgroups(ctx, g.Pod.UID)); err != nil {
			return err
		}
		return pod.Checkpoint().Remove()
	case GarbageLogs, GarbageEvents, GarbageFullLog, GarbageClaim:
	}
	return nil
}

// removeLostSandbox removes a sandbox with its records. With the last sandbox of a pod without a checkpoint, it also
// removes the pod's files outside of it.
func (x *Collector) removeLostSandbox(ctx context.Context, l *leftovers, g *Garbage) error {
	for _, c := range l.containers {
		if c.GetPodSandboxId() != g.ID {
			continue
		}
		if err := x.client.RemoveRecord(ctx, c.GetId()); err != nil {
			return err
		}
	}
	err := x.client.StopSandbox(ctx, g.ID)
	if err == nil {
		err = x.client.RemoveSandbox(ctx, g.ID)
	}
	if err != nil || l.checkpoint || len(l.sandboxes) > 1 {
		return err
	}
	return errors.Join(
		x.removeCgroups(ctx, g.Pod.UID),
		x.layout.Pod(g.Pod.UID).Logs(g.Pod.Namespace, g.Pod.Name).RemoveAll(),
	)
}
