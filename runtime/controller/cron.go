package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/workload"
)

// CronStatus is the record of a CronJob's runs.
type CronStatus struct {
	// Last is the time of the last started run.
	Last time.Time `json:"last,omitzero"`
}

// JobsOf returns the records of a CronJob's Jobs.
func JobsOf(key state.ObjectKey, records []*Record) []*Record {
	var jobs []*Record
	for _, r := range records {
		if r.Workload.Job != nil && key.Kind == podspec.KindCronJob && Owns(key, r.Workload.Job) {
			jobs = append(jobs, r)
		}
	}
	return jobs
}

// Tick starts the due run of a CronJob, and deletes its outdated Jobs. records are those of all workloads. Tick returns
// whether it changed something, and when the next run is due.
//
// If podctl is killed in between, no run starts twice, because a Job has the time of its run in its name.
func (s *Store) Tick(ctx context.Context, r *Record, records []*Record) (changed bool, next time.Time, err error) {
	in := &workload.CronInput{CronJob: r.Workload.CronJob, Since: r.CreatedAt, Now: s.now()}
	if r.Cron != nil {
		in.Last = r.Cron.Last
	}
	for _, job := range JobsOf(r.Key(), records) {
		run := workload.CronRun{Name: job.Workload.Job.Name}
		if job.Job != nil {
			run.Status = *job.Job
		}
		in.Jobs = append(in.Jobs, run)
	}
	x, err := workload.ExpandCron(in)
	if err != nil {
		return false, time.Time{}, fmt.Errorf("%s: %w", r.Key(), err)
	}
	var errs []error
	for _, name := range x.Gone {
		_, err := s.Delete(ctx, state.ObjectKey{Namespace: r.Key().Namespace, Kind: podspec.KindJob, Name: name})
		errs = append(errs, err)
	}
	if !x.Start.IsZero() {
		errs = append(errs, s.start(ctx, r, x.Start))
	}
	return len(x.Gone) > 0 || !x.Start.IsZero(), x.Next, errors.Join(errs...)
}

// start stores the Job of a run, and then the time of the run.
func (s *Store) start(ctx context.Context, r *Record, at time.Time) error {
	job := workload.JobOf(r.Workload, workload.JobNameAt(r.Key().Name, at), at)
	_, err := s.Get(KeyOf(job))
	if missing := (*objects.NotFoundError)(nil); errors.As(err, &missing) {
		_, err = s.Put(ctx, job)
	}
	if err != nil {
		return err
	}
	return s.change(ctx, r.Key(), func(now *Record) { now.Cron = &CronStatus{Last: at} })
}
