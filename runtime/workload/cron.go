package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// CronInput is the input for the runs of a CronJob.
type CronInput struct {
	CronJob *batchv1.CronJob
	// Since is when the CronJob was first applied. It missed no run before.
	Since time.Time
	// Last is the time of the last started run; zero for none.
	Last time.Time
	// Jobs are the existing Jobs of the CronJob.
	Jobs []CronRun
	Now  time.Time
}

// CronRun is a Job of a CronJob.
type CronRun struct {
	Name   string
	Status batchv1.JobStatus
}

// CronExpansion is the result of expanding a CronJob at a time.
type CronExpansion struct {
	// Start is the time of the run to start now; zero for none.
	Start time.Time
	// Gone are the Jobs to delete: those that a new run replaces, and finished ones beyond the history limits.
	Gone []string
	// Wait explains why a due run does not start; otherwise empty.
	Wait string
	// Next is when the next run is due; zero if there is none.
	Next time.Time
}

// ExpandCron returns which run of a CronJob starts now, and which Jobs to delete (syncCronJob of the CronJob
// controller).
func ExpandCron(in *CronInput) (*CronExpansion, error) {
	schedule, err := scheduleOf(in.CronJob)
	if err != nil {
		return nil, err
	}
	x := &CronExpansion{Gone: in.beyondHistory()}
	if ptr.Deref(in.CronJob.Spec.Suspend, false) {
		return x, nil
	}
	due := in.due(schedule)
	x.Next = schedule.Next(in.Now)
	active := in.active()
	switch policy := in.CronJob.Spec.ConcurrencyPolicy; {
	case due.IsZero():
	case in.isLate(due):
		x.Wait = fmt.Sprintf("The run of %s was not started within startingDeadlineSeconds.", due.Format(time.RFC3339))
	case policy == batchv1.ForbidConcurrent && len(active) > 0:
		x.Wait = fmt.Sprintf("The run of %s waits for %s to end (concurrencyPolicy Forbid).",
			due.Format(time.RFC3339), active[0])
	default:
		if policy == batchv1.ReplaceConcurrent {
			x.Gone = append(x.Gone, active...)
		}
		x.Start = due
	}
	return x, nil
}

// scheduleOf returns the schedule of a CronJob in its time zone.
func scheduleOf(c *batchv1.CronJob) (cron.Schedule, error) {
	text := c.Spec.Schedule
	if zone := ptr.Deref(c.Spec.TimeZone, ""); zone != "" {
		if _, err := time.LoadLocation(zone); err != nil {
			return nil, fmt.Errorf("the time zone %s is not known on this machine", strconv.Quote(zone))
		}
		text = "TZ=" + zone + " " + text
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("the schedule %s: %w", strconv.Quote(c.Spec.Schedule), err)
	}
	return schedule, nil
}

// due returns the time of the newest run that is due and was not started; zero for none. If several were missed, only
// the newest counts (mostRecentScheduleTime of the controller).
func (in *CronInput) due(schedule cron.Schedule) (due time.Time) {
	earliest := in.Since
	if in.Last.After(earliest) {
		earliest = in.Last
	}
	if deadline := in.CronJob.Spec.StartingDeadlineSeconds; deadline != nil {
		if from := in.Now.Add(-time.Duration(*deadline) * time.Second); from.After(earliest) {
			earliest = from
		}
	}
	// The search repeatedly continues from half of the remaining time, so that it finds the newest run in few steps,
	// whatever the schedule is.
	for at := schedule.Next(earliest); !at.IsZero() && !at.After(in.Now); at = schedule.Next(earliest) {
		due = at
		if half := at.Add(in.Now.Sub(at) / 2); schedule.Next(half).After(in.Now) || half.Equal(at) {
			earliest = at
		} else {
			earliest = half
		}
	}
	return due
}

// isLate reports whether it is too late to start a run.
func (in *CronInput) isLate(due time.Time) bool {
	deadline := in.CronJob.Spec.StartingDeadlineSeconds
	return deadline != nil && due.Add(time.Duration(*deadline)*time.Second).Before(in.Now)
}

// active returns the names of the unfinished Jobs.
func (in *CronInput) active() (names []string) {
	for i := range in.Jobs {
		if JobEnd(&in.Jobs[i].Status) == nil {
			names = append(names, in.Jobs[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// beyondHistory returns the oldest finished Jobs beyond the history limits (cleanupFinishedJobs of the controller).
func (in *CronInput) beyondHistory() (gone []string) {
	for kind, limit := range map[batchv1.JobConditionType]*int32{
		batchv1.JobComplete: in.CronJob.Spec.SuccessfulJobsHistoryLimit,
		batchv1.JobFailed:   in.CronJob.Spec.FailedJobsHistoryLimit,
	} {
		var ended []CronRun
		for _, run := range in.Jobs {
			if end := JobEnd(&run.Status); end != nil && end.Type == kind {
				ended = append(ended, run)
			}
		}
		slices.SortStableFunc(ended, func(a, b CronRun) int {
			return cmp.Or(startOf(&a.Status).Compare(startOf(&b.Status)), cmp.Compare(a.Name, b.Name))
		})
		for i := range max(0, len(ended)-int(ptr.Deref(limit, 1))) {
			gone = append(gone, ended[i].Name)
		}
	}
	slices.Sort(gone)
	return gone
}

// JobEnd returns the condition of a Job's end; nil if it has not ended.
func JobEnd(status *batchv1.JobStatus) *batchv1.JobCondition {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Status == v1.ConditionTrue &&
			(c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

func startOf(status *batchv1.JobStatus) time.Time {
	if status.StartTime == nil {
		return time.Time{}
	}
	return status.StartTime.Time
}

// scheduledAt is the annotation of a Job with the time of its run.
const scheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp"

// JobNameAt returns the name of the Job of a CronJob for a time (getJobName of the controller).
func JobNameAt(name string, at time.Time) string { return fmt.Sprintf("%s-%d", name, at.Unix()/60) }

// JobOf returns the Job of a CronJob with a name and the time of its run; the time is zero for a manual start.
func JobOf(w *podspec.Workload, name string, at time.Time) *podspec.Workload {
	c := w.CronJob
	template := c.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: podspec.KindJob},
		ObjectMeta: template.ObjectMeta,
		Spec:       template.Spec,
	}
	job.Namespace, job.Name, job.UID = c.Namespace, name, podspec.WorkloadUID(podspec.KindJob, c.Namespace, name)
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	if at.IsZero() {
		job.Annotations["cronjob.kubernetes.io/instantiate"] = "manual"
	} else {
		zone := at.Location()
		if name := ptr.Deref(c.Spec.TimeZone, ""); name != "" {
			if loaded, err := time.LoadLocation(name); err == nil {
				zone = loaded
			}
		}
		job.Annotations[scheduledAt] = at.In(zone).Format(time.RFC3339)
	}
	job.OwnerReferences = []metav1.OwnerReference{{
		APIVersion:         "batch/v1",
		Kind:               podspec.KindCronJob,
		Name:               c.Name,
		UID:                c.UID,
		Controller:         new(true),
		BlockOwnerDeletion: new(true),
	}}
	podspec.SelectJob(job)
	of := &podspec.Workload{Job: job, Origin: podspec.Origin{Source: w.Source}}
	pod := w.Template.Pod.DeepCopy()
	pod.Name = of.FirstPod()
	pod.UID = podspec.UID(pod.Namespace, pod.Name)
	pod.Labels = job.Spec.Template.Labels
	of.Template = w.Template.WithPod(pod)
	return of
}
