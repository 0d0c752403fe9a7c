package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
)

// keptDeleted is how long an agent keeps the logs and events of a deleted pod, so that users can read them.
const keptDeleted = 24 * time.Hour

// Upkeep returns what an agent removes by itself, which is less than List. For a pod without a checkpoint, which may
// belong to another state directory, it includes only local files. It includes logs and events of deleted pods only
// after a day. maxRecords limits the records; below zero means no limit. The newest record of a container that does not
// run always stays.
func (x *Collector) Upkeep(ctx context.Context, maxRecords int) ([]Garbage, error) {
	return x.upkeep(ctx, maxRecords, x.now().Add(-keptDeleted))
}

// Reclaim returns what can be removed from a full disk. It is Upkeep with all removable records, and the logs and
// events of all deleted pods (kubelet: DeleteAllUnusedContainers).
func (x *Collector) Reclaim(ctx context.Context) ([]Garbage, error) {
	return x.upkeep(ctx, 0, time.Time{})
}

// upkeep returns what can be removed, with the logs and events of pods deleted before a time. A zero time means all.
func (x *Collector) upkeep(ctx context.Context, maxRecords int, deletedBefore time.Time) ([]Garbage, error) {
	pods, deleted, err := x.survey(ctx, deletedBefore)
	if err != nil {
		return nil, err
	}
	var found []Garbage
	records := recordCount{most: maxRecords}
	for _, l := range pods {
		if l.checkpoint || len(l.sandboxes)+len(l.containers) == 0 {
			garbage := l.garbage()
			found = append(found, garbage...)
			records.add(l, garbage)
		}
	}
	return slices.Concat(found, records.tooMany(), deleted), nil
}

// recordCount counts the records of exited containers (kubelet: evictContainers, MaxContainers).
type recordCount struct {
	most, dead int
	spares     []spare
}

// spare is a removable record with its age.
type spare struct {
	garbage Garbage
	created int64
}

// add counts the records of one pod, except those that are removed anyway.
func (r *recordCount) add(l *leftovers, garbage []Garbage) {
	spares := l.spares()
	for _, c := range l.containers {
		of := func(g Garbage) bool { return g.ID == c.GetId() }
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED ||
			!criconfig.MadeByPodctl(c.GetAnnotations()) || slices.ContainsFunc(garbage, of) {
			continue
		}
		r.dead++
		if i := slices.IndexFunc(spares, of); i >= 0 {
			r.spares = append(r.spares, spare{spares[i], c.GetCreatedAt()})
		}
	}
}

// tooMany returns the oldest removable records, as many as exceed the limit.
func (r *recordCount) tooMany() []Garbage {
	if r.most < 0 {
		return nil
	}
	slices.SortStableFunc(r.spares, func(a, b spare) int { return cmp.Compare(a.created, b.created) })
	var found []Garbage
	for _, s := range r.spares[:min(max(r.dead-r.most, 0), len(r.spares))] {
		s.garbage.Reason = fmt.Sprintf("there are %d records of containers that ended, and %d are kept", r.dead, r.most)
		found = append(found, s.garbage)
	}
	return found
}

// spares returns the newest records of exited containers that run again. They show the result of the previous run,
// which the pod does not need.
func (l *leftovers) spares() []Garbage {
	observe.NewestFirst(l.sandboxes, l.containers)
	runs, seen := map[string]bool{}, map[string]bool{}
	for _, c := range l.containers {
		if c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			runs[c.GetMetadata().GetName()] = true
		}
	}
	var found []Garbage
	for _, c := range l.containers {
		name := c.GetMetadata().GetName()
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || seen[name] {
			continue
		}
		seen[name] = true
		if runs[name] && l.checkpoint && criconfig.MadeByPodctl(c.GetAnnotations()) {
			found = append(found, Garbage{
				Kind:    GarbageContainer,
				Pod:     l.ref(),
				Name:    name,
				ID:      c.GetId(),
				Attempt: c.GetMetadata().GetAttempt(),
				spare:   true,
			})
		}
	}
	return found
}

// RemoveIfFree is Remove without waiting for a lock. If another process works on the pod, it returns a
// *filelock.LockedError.
func (x *Collector) RemoveIfFree(ctx context.Context, g Garbage) error { // as Remove
	return x.removeWithin(ctx, &g, 0)
}

// GrownLog is a log that is large enough to be rotated.
type GrownLog struct {
	Pod     model.PodRef
	Path    string
	Size    int64
	Changed time.Time
}

// GrownLogs returns the logs of pods that are large enough to be rotated. It checks only the files; FullLogs asks the
// runtime whether a container writes to them. If a kubelet is running, it rotates them instead.
func (x *Collector) GrownLogs(pods []model.PodRef) []GrownLog {
	var grown []GrownLog
	for _, ref := range pods {
		dir, err := x.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name).Dir()
		if err != nil {
			continue
		}
		logs, _ := fs.Glob(os.DirFS(dir), "*/*.log")
		for _, log := range logs {
			path := filepath.Join(dir, log)
			if info, err := os.Lstat(path); err == nil &&
				info.Mode().IsRegular() && x.rotator.limits.Reached(info.Size()) {
				grown = append(grown, GrownLog{Pod: ref, Path: path, Size: info.Size(), Changed: info.ModTime()})
			}
		}
	}
	if len(grown) > 0 && x.host.CheckKubelet() != nil {
		return nil
	}
	return grown
}

// TrimFiles frees the disk space that containers use through the hosts files and termination messages that podctl
// mounts into them.
func (x *Collector) TrimFiles(pods []model.PodRef) error {
	var errs []error
	for _, ref := range pods {
		errs = append(errs, x.layout.Pod(ref.UID).TrimFiles())
	}
	return errors.Join(errs...)
}

// FullLogs returns the logs of a pod that are due for rotation.
func (x *Collector) FullLogs(ctx context.Context, ref model.PodRef) ([]Garbage, error) {
	l, err := x.leftoversOf(ctx, ref.UID)
	if err != nil || l.unmanaged() {
		return nil, err
	}
	return x.rotator.fullLogs(ctx, l)
}
