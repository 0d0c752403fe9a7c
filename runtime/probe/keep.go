package probe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// merged returns the record for the checkpoint after this result. A record of another process that is newer or decided
// stays. A time in the future comes from a clock that was set back, and is ignored.
func (r *Report) merged(now time.Time, record model.ProbeRecord) model.ProbeRecord {
	others := !record.CountedAt.Equal(r.Known.CountedAt)
	newer := record.CountedAt.After(r.Record.CountedAt) && !model.AheadOf(now, record.CountedAt)
	if !r.Changed || others && (newer || record.Reopened(r.Probe, now, time.Time{}).OnHold) {
		return record
	}
	return r.Record
}

// isIn reports whether a manifest has the probe that was run.
func (r *Report) isIn(applied *podspec.Desired) bool {
	ref, ok := podspec.FindContainer(applied.Pod, r.Container)
	return ok && equality.Semantic.DeepEqual(r.Probe, model.ProbeOf(ref.Container, r.Type))
}

// RecordReports records the results of one pod's probes under the pod's lock: changed records, and events. It ignores
// results of containers that are gone, of probes that the manifest no longer has, and of a pod that was never applied.
// For a pod that is being deleted, it records only readiness. It writes only changes.
func (p *Prober) RecordReports(ctx context.Context, now time.Time, ref model.PodRef, reports []Report) error {
	before, err := p.layout.Pod(ref.UID).Checkpoint().Read()
	if err != nil || before.Applied == nil || len(reports) == 0 {
		return err
	}
	there := p.containers(ctx, ref)
	return p.update(ctx, ref, func(j *state.Checkpoint, rec *events.Recorder) bool {
		if j.Applied == nil {
			return false
		}
		wanted := slices.DeleteFunc(slices.Clone(reports), func(r Report) bool {
			ended := j.Leaving() != nil && r.Type != model.Readiness
			return ended || !r.isIn(j.Applied) || there != nil && !there[r.ContainerID]
		})
		changed := false
		for i := range wanted {
			r := &wanted[i]
			record := j.Probes[r.ContainerID][r.Type]
			r.Record = r.merged(now, record)
			changed = changed || r.Record != record
		}
		recordProbes(rec, now, wanted, j.Probes)
		return keepProbes(j, before.Probes, there, wanted) || changed
	})
}

// containers returns the IDs of a pod's containers. It returns nil if the runtime does not answer.
func (p *Prober) containers(ctx context.Context, ref model.PodRef) map[string]bool {
	list, err := p.observer.ListContainers(ctx, ref)
	if err != nil {
		return nil
	}
	there := map[string]bool{}
	for _, c := range list {
		there[c.GetId()] = true
	}
	return there
}

// Record records the results of a round, under the pod's lock and only for containers that still exist. It does nothing
// for a pod that podctl never applied.
func (p *Prober) Record(ctx context.Context, ref model.PodRef, s *snapshot.Pod, reports []Report) error {
	if s.Checkpoint.Applied == nil || !slices.ContainsFunc(reports, func(r Report) bool { return r.Ran }) {
		return nil
	}
	return p.update(ctx, ref, func(j *state.Checkpoint, rec *events.Recorder) bool {
		if j.Generation != s.Checkpoint.Generation || j.Leaving() != nil {
			return false
		}
		for i := range reports {
			if reports[i].Ran {
				reports[i].rebase(j.Probes, s.Checkpoint.Probes, s.TakenAt)
			}
		}
		recordProbes(rec, s.TakenAt, reports, j.Probes)
		keepProbes(j, s.Checkpoint.Probes, idsOf(s), reports)
		return true
	})
}

func idsOf(s *snapshot.Pod) map[string]bool {
	there := map[string]bool{}
	for _, c := range s.Containers {
		there[c.Status.GetId()] = true
	}
	return there
}

// update changes the checkpoint of a pod, and adds events.
func (p *Prober) update(ctx context.Context, ref model.PodRef, change Change) error {
	changed := false
	err := p.write(ctx, ref, func(j *state.Checkpoint, rec *events.Recorder) bool {
		changed = change(j, rec)
		return changed
	})
	if changed && p.Changed != nil {
		p.Changed(ctx, ref.UID)
	}
	return err
}

// write makes a change under the pod's lock. If a pass of this process has the lock, the pass makes the change, because
// it may keep the lock while it pulls an image.
func (p *Prober) write(ctx context.Context, ref model.PodRef, change Change) error {
	for {
		if taken, err := p.held.change(ref.UID, change); taken {
			return err
		}
		until, stop := p.held.waitForPass(ctx, ref.UID)
		locked, err := p.writeLocked(until, ref, change)
		begun := until.Err() != nil && ctx.Err() == nil
		stop()
		if locked || !begun {
			return err
		}
	}
}

func (p *Prober) writeLocked(ctx context.Context, ref model.PodRef, change Change) (locked bool, err error) {
	pod := p.layout.Pod(ref.UID)
	lock, err := p.locker.Lock(ctx, ref)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	j, err := pod.Checkpoint().Read()
	if err != nil {
		return true, err
	}
	rec := events.Recorder{Pod: j.Applied, Listen: p.Recorded}
	if change(j, &rec) {
		err = pod.Checkpoint().Write(j)
	}
	return true, errors.Join(err, rec.Write(pod, ref, j.Redactor(nil)))
}

// keepProbes adds results to the checkpoint and drops the records of containers that are gone. It reports whether it
// dropped any. Records of containers that are not in before come from another process, and stay. If there is nil, the
// existing containers are unknown.
func keepProbes(j *state.Checkpoint, before Memory, there map[string]bool, reports []Report) (dropped bool) {
	known := len(j.Probes)
	maps.DeleteFunc(j.Probes, func(id string, _ map[model.ProbeType]model.ProbeRecord) bool {
		return there != nil && before[id] != nil && !there[id]
	})
	dropped = len(j.Probes) < known
	if j.Probes == nil {
		j.Probes = Memory{}
	}
	Memory(j.Probes).store(reports)
	return dropped
}
