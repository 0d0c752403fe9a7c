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

// CronStatus is what is kept of a CronJob's runs.
type CronStatus struct {
	// Last is the time of the last run that was started.
	Last time.Time `json:"last,omitzero"`
}

// JobsOf are the records of a CronJob's Jobs.
func JobsOf(key state.ObjectKey, records []*Record) []*Record {
	var jobs []*Record
	for _, r := range records {
		if r.Workload.Job != nil && key.Kind == podspec.KindCronJob && Owns(key, r.Workload.Job) {
			jobs = append(jobs, r)
		}
	}
	return jobs
}

// Tick starts the run of a CronJob that is due, and deletes the Jobs that shall go. Records are those of all workloads. It
// returns whether it has changed something, and when the next run is due.
//
// Whoever is killed in between starts no run twice: a Job has the time of its run in its name.
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

// start keeps the Job of a run, and then that it was started.
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
