package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// Store has the workloads of one state directory.
type Store struct {
	objects.Files[Record]

	locker *state.Locker
	now    func() time.Time
}

// NewStore makes a Store.
func NewStore(locker *state.Locker, now func() time.Time) *Store {
	return &Store{locker: locker, Files: objects.Files[Record]{Dir: locker.Layout.Workloads(), Decode: decode}, now: now}
}

// Change is what becomes of a workload that is applied.
type Change struct {
	Outcome objects.Outcome
	// Record is what is kept then.
	Record *Record
	// moves is set when the workload is unchanged and comes into another set, out of one, or from another source.
	moves bool
}

// Change is what Put would do. A record that is damaged is replaced; a change that the API server refuses is an
// *objects.FrozenError.
func (s *Store) Change(w *podspec.Workload) (Change, error) {
	before, err := s.Find(KeyOf(w))
	switch {
	case errors.Is(err, state.ErrDamaged):
		return Change{Outcome: objects.Configured, Record: before.next(w, s.now())}, nil
	case err != nil:
		return Change{}, err
	case before == nil:
		return Change{Outcome: objects.Created, Record: before.next(w, s.now())}, nil
	case same(before.Workload, normal(w)):
		return Change{Outcome: objects.Unchanged, Record: before.from(w), moves: moves(before.Workload, w)}, nil
	}
	return Change{Outcome: objects.Configured, Record: before.next(w, s.now())}, frozen(before.Workload, w)
}

// Merge gives a workload of a manifest what stays of the stored one although the manifest does not say it: the restart that
// somebody asked for. Of one whose record cannot be read nothing stays.
func (s *Store) Merge(w *podspec.Workload) {
	if before, err := s.Find(KeyOf(w)); err == nil && before != nil {
		w.KeepRestart(before.Workload)
	}
}

// Put keeps a workload as it is applied now.
func (s *Store) Put(ctx context.Context, w *podspec.Workload) (c Change, err error) {
	lock, err := s.locker.LockWorkloads(ctx)
	if err != nil {
		return Change{}, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if c, err = s.Change(w); err != nil || c.Outcome == objects.Unchanged && !c.moves {
		return c, err
	}
	if err = s.checkRoom(&c); err != nil {
		return Change{}, err
	}
	return c, s.write(c.Record)
}

// checkRoom refuses more workloads than are kept.
func (s *Store) checkRoom(c *Change) error {
	if c.Outcome != objects.Created {
		return nil
	}
	keys, err := s.Dir.List()
	if err == nil && len(keys) >= state.ObjectsMax {
		err = fmt.Errorf("%d workloads are stored, and %s would be one more than there can be: delete some", len(keys), c.Record.Key())
	}
	return err
}

// Expire forgets a Job that has lived its time (ttlSecondsAfterFinished). The record of one that a source of an agent brought stays,
// without pods: its manifest is there still, and would run again.
func (s *Store) Expire(ctx context.Context, key state.ObjectKey) error {
	r, err := s.Find(key)
	if err != nil || r == nil || r.Workload.Keeper != "" {
		return err
	}
	_, err = s.Delete(ctx, key)
	return err
}

// KeepJob keeps the status of a Job, unless the Job is gone.
func (s *Store) KeepJob(ctx context.Context, r *Record) error {
	return s.change(ctx, r.Key(), func(now *Record) { now.Job = r.Job })
}

// change changes the record of a workload, unless that is gone. Nothing is written if nothing changes.
func (s *Store) change(ctx context.Context, key state.ObjectKey, change func(*Record)) (err error) {
	lock, err := s.locker.LockWorkloads(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	now, err := s.Find(key)
	if err != nil || now == nil {
		return err
	}
	before := *now
	if change(now); sameText(before, now) {
		return nil
	}
	return s.write(now)
}

func (s *Store) write(r *Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("storing %s: %w", r.Key(), err)
	}
	return s.Dir.Write(r.Key(), text)
}

// Delete removes the record of a workload. One that is gone is no error; found reports whether there was one.
func (s *Store) Delete(ctx context.Context, key state.ObjectKey) (found bool, err error) {
	lock, err := s.locker.LockWorkloads(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	text, err := s.Dir.Read(key)
	if err != nil || text == nil {
		return false, err
	}
	return true, s.Dir.Remove(key)
}
