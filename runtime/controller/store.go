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

// Store stores the workloads of one state directory.
type Store struct {
	objects.Files[Record]

	locker *state.Locker
	now    func() time.Time
}

// NewStore returns a Store.
func NewStore(locker *state.Locker, now func() time.Time) *Store {
	return &Store{
		locker: locker,
		Files:  objects.Files[Record]{Dir: locker.Layout.Workloads(), Decode: decode},
		now:    now,
	}
}

// Change is the effect of applying a workload.
type Change struct {
	Outcome objects.Outcome
	// Record is the new record.
	Record *Record
	// moves is set if the workload is unchanged but its set or source changes.
	moves bool
}

// Change returns what Put would do. A damaged record is replaced. A change that the API server refuses is an
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

// Merge adds to a workload of a manifest the parts of the stored one that the manifest does not contain: a requested
// restart. It adds nothing if the record cannot be read.
func (s *Store) Merge(w *podspec.Workload) {
	if before, err := s.Find(KeyOf(w)); err == nil && before != nil {
		w.KeepRestart(before.Workload)
	}
}

// Put stores a workload.
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

// checkRoom refuses workloads beyond the maximum.
func (s *Store) checkRoom(c *Change) error {
	if c.Outcome != objects.Created {
		return nil
	}
	keys, err := s.Dir.List()
	if err == nil && len(keys) >= state.ObjectsMax {
		err = fmt.Errorf("%d workloads are stored, and %s would exceed the limit: delete some",
			len(keys), c.Record.Key())
	}
	return err
}

// Expire removes the record of a Job whose time to live has passed (ttlSecondsAfterFinished). The record of a Job from
// a source of the agent stays, without pods: its manifest still exists, and the Job would run again.
func (s *Store) Expire(ctx context.Context, key state.ObjectKey) error {
	r, err := s.Find(key)
	if err != nil || r == nil || r.Workload.Owner != "" {
		return err
	}
	_, err = s.Delete(ctx, key)
	return err
}

// KeepJob stores the status of a Job, unless the Job is gone.
func (s *Store) KeepJob(ctx context.Context, r *Record) error {
	return s.change(ctx, r.Key(), func(now *Record) { now.Job = r.Job })
}

// change changes the record of a workload, if it exists. It writes nothing if nothing changes.
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

// Delete removes the record of a workload. A missing record is not an error; found reports whether there was one.
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
