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

// keptDeleted is how long an agent keeps the logs and the events of a deleted pod: they are there
// to be read after it.
const keptDeleted = 24 * time.Hour

// Upkeep lists what an agent removes by itself. It is less than List has: of a pod without a
// checkpoint, which may be another state directory's, only files that lie here, and what is left
// to be read of deleted pods only after a day. Of records there may be so many; below zero means
// no limit. The newest of each container stays in any case if the container does not run.
func (x *Collector) Upkeep(ctx context.Context, maxRecords int) ([]Garbage, error) {
	return x.upkeep(ctx, maxRecords, x.now().Add(-keptDeleted))
}

// Reclaim lists what can go on a disk that runs full: as Upkeep, with all records that can go, and what
// is left to be read of all deleted pods (kubelet: DeleteAllUnusedContainers).
func (x *Collector) Reclaim(ctx context.Context) ([]Garbage, error) {
	return x.upkeep(ctx, 0, time.Time{})
}

// upkeep lists what can go, with what is left of pods that were deleted before a time; zero means
// whenever.
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

// recordCount counts the records of containers that ended (kubelet: evictContainers, MaxContainers).
type recordCount struct {
	most, dead int
	spares     []spare
}

// spare is a record that can go, and its age.
type spare struct {
	garbage Garbage
	created int64
}

// add counts what one pod has, but for what is removed anyway.
func (r *recordCount) add(l *leftovers, garbage []Garbage) {
	spares := l.spares()
	for _, c := range l.containers {
		of := func(g Garbage) bool { return g.ID == c.GetId() }
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || !criconfig.MadeByPodctl(c.GetAnnotations()) || slices.ContainsFunc(garbage, of) {
			continue
		}
		r.dead++
		if i := slices.IndexFunc(spares, of); i >= 0 {
			r.spares = append(r.spares, spare{spares[i], c.GetCreatedAt()})
		}
	}
}

// tooMany are the oldest of those that can go, as many as there are too many.
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

// spares are the newest records of containers that have ended and run again. They tell how the run
// before ended, and nothing that the pod needs.
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
			found = append(found, Garbage{Kind: GarbageContainer, Pod: l.ref(), Name: name, ID: c.GetId(), Attempt: c.GetMetadata().GetAttempt(), spare: true})
		}
	}
	return found
}

// RemoveIfFree is Remove for a pod that nobody works on: a lock is not waited for. The error is a
// *filelock.LockedError then.
func (x *Collector) RemoveIfFree(ctx context.Context, g Garbage) error { //nolint:gocritic // as Remove
	return x.removeWithin(ctx, &g, 0)
}

// GrownLog is a log that is large enough to be rotated.
type GrownLog struct {
	Pod     model.PodRef
	Path    string
	Size    int64
	Changed time.Time
}

// GrownLogs lists the logs of pods that are large enough to be rotated. It looks at files alone:
// whether a container writes to them is what FullLogs asks the runtime. Where a kubelet lives, it
// rotates them.
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
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && x.rotator.limits.Reached(info.Size()) {
				grown = append(grown, GrownLog{Pod: ref, Path: path, Size: info.Size(), Changed: info.ModTime()})
			}
		}
	}
	if len(grown) > 0 && x.host.CheckKubelet() != nil {
		return nil
	}
	return grown
}

// TrimFiles frees what containers of pods use through the hosts files and termination messages that podctl mounts into them.
func (x *Collector) TrimFiles(pods []model.PodRef) error {
	var errs []error
	for _, ref := range pods {
		errs = append(errs, x.layout.Pod(ref.UID).TrimFiles())
	}
	return errors.Join(errs...)
}

// FullLogs lists the logs of a pod that are due to be rotated.
func (x *Collector) FullLogs(ctx context.Context, ref model.PodRef) ([]Garbage, error) {
	l, err := x.leftoversOf(ctx, ref.UID)
	if err != nil || l.unmanaged() {
		return nil, err
	}
	return x.rotator.fullLogs(ctx, l)
}
