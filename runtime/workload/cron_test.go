package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
)

// moment returns a time of a day in May 2026, in UTC.
func moment(text string) time.Time {
	at, err := time.Parse("15:04:05", text)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 5, 4, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// cronJob runs every ten minutes, with changes of its spec.
func cronJob(change func(*batchv1.CronJobSpec)) *batchv1.CronJob {
	c := &batchv1.CronJob{Spec: batchv1.CronJobSpec{
		Schedule:                   "*/10 * * * *",
		ConcurrencyPolicy:          batchv1.AllowConcurrent,
		SuccessfulJobsHistoryLimit: new(int32(3)),
		FailedJobsHistoryLimit:     new(int32(1)),
	}}
	c.Namespace, c.Name = "default", "tick"
	if change != nil {
		change(&c.Spec)
	}
	return c
}

// cronRun returns a Job that started at a time and ended as given; empty if it still runs.
func cronRun(name, started string, how batchv1.JobConditionType) CronRun {
	r := CronRun{Name: name, Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: moment(started)}}}
	if how != "" {
		r.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: v1.ConditionTrue}}
	}
	return r
}

// TestCronRuns checks that a due run starts once, that only the newest missed run starts, and that policies, deadlines
// and time zones count (cases of TestControllerV2SyncCronJob of the CronJob controller).
func TestCronRuns(t *testing.T) {
	running := []CronRun{cronRun("tick-1", "10:00:00", "")}
	for name, c := range map[string]struct {
		since, last, now string
		jobs             []CronRun
		change           func(*batchv1.CronJobSpec)
		start, gone      string
		next             string
		wait             string
	}{
		"nothing is due yet":           {since: "10:01:00", now: "10:09:59", next: "10:10:00"},
		"one is due":                   {since: "10:01:00", now: "10:10:00", start: "10:10:00", next: "10:20:00"},
		"the due one was started":      {since: "10:01:00", last: "10:10:00", now: "10:12:00", next: "10:20:00"},
		"of several missed the newest": {since: "01:01:00", last: "03:10:00", now: "10:12:00", start: "10:10:00", next: "10:20:00"},
		"suspended": {since: "10:01:00", now: "10:12:00", change: func(s *batchv1.CronJobSpec) {
			s.Suspend = new(true)
		}},
		"another one runs": {since: "10:01:00", now: "10:12:00", jobs: running, start: "10:10:00", next: "10:20:00"},
		"another one runs, Forbid": {
			since:  "10:01:00",
			now:    "10:12:00",
			jobs:   running,
			change: func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = batchv1.ForbidConcurrent },
			next:   "10:20:00",
			wait:   "waits for tick-1 to end",
		},
		"another one runs, Replace": {
			since:  "10:01:00",
			now:    "10:12:00",
			jobs:   running,
			change: func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = batchv1.ReplaceConcurrent },
			start:  "10:10:00",
			gone:   "tick-1",
			next:   "10:20:00",
		},
		"within its deadline": {since: "10:01:00", now: "10:10:29", change: func(s *batchv1.CronJobSpec) {
			s.StartingDeadlineSeconds = new(int64(30))
		}, start: "10:10:00", next: "10:20:00"},
		"after its deadline": {since: "10:01:00", now: "10:10:31", change: func(s *batchv1.CronJobSpec) {
			s.StartingDeadlineSeconds = new(int64(30))
		}, next: "10:20:00"},
		"in a time zone": {since: "10:01:00", now: "10:31:00", change: func(s *batchv1.CronJobSpec) {
			s.Schedule, s.TimeZone = "30 12 * * *", new("Europe/Berlin")
		}, start: "10:30:00", next: "-"},
		"a finished Job does not block": {
			since:  "10:01:00",
			now:    "10:12:00",
			jobs:   []CronRun{cronRun("tick-1", "10:00:00", batchv1.JobFailed)},
			change: func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = batchv1.ForbidConcurrent },
			start:  "10:10:00",
			next:   "10:20:00",
		},
	} {
		in := &CronInput{CronJob: cronJob(c.change), Since: moment(c.since), Jobs: c.jobs, Now: moment(c.now)}
		if c.last != "" {
			in.Last = moment(c.last)
		}
		x, err := ExpandCron(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for what, pair := range map[string][2]string{
			"start": {clockOf(x.Start), c.start},
			"gone":  {strings.Join(x.Gone, " "), c.gone},
			"next":  {clockOf(x.Next), c.next},
		} {
			if pair[0] != pair[1] && pair[1] != "-" {
				t.Errorf("%s: %s is %q, want %q", name, what, pair[0], pair[1])
			}
		}
		if !strings.Contains(x.Wait, c.wait) || (c.wait == "" && x.Wait != "") {
			t.Errorf("%s: waits %q, want %q", name, x.Wait, c.wait)
		}
	}
}

func clockOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("15:04:05")
}

// TestCronHistory checks that as many of the newest finished Jobs stay as the limits allow.
func TestCronHistory(t *testing.T) {
	in := &CronInput{CronJob: cronJob(nil), Since: moment("00:00:01"), Last: moment("10:10:00"), Now: moment("10:11:00"), Jobs: []CronRun{
		cronRun("d", "04:00:00", batchv1.JobComplete), cronRun("a", "01:00:00", batchv1.JobComplete),
		cronRun("b", "02:00:00", batchv1.JobComplete),
		cronRun("c", "03:00:00", batchv1.JobComplete), cronRun("e", "00:30:00", ""),
		cronRun("f", "05:00:00", batchv1.JobFailed), cronRun("g", "06:00:00", batchv1.JobFailed),
	}}
	x, err := ExpandCron(in)
	if err != nil || !slices.Equal(x.Gone, []string{"a", "f"}) {
		t.Errorf("%v %v", x, err)
	}
}

// TestCronTroubles checks that an unknown schedule or time zone is an error.
func TestCronTroubles(t *testing.T) {
	for want, change := range map[string]func(*batchv1.CronJobSpec){
		"the time zone \"Nowhere\" is not known": func(s *batchv1.CronJobSpec) { s.TimeZone = new("Nowhere") },
		"the schedule \"never\"":                 func(s *batchv1.CronJobSpec) { s.Schedule = "never" },
	} {
		if _, err := ExpandCron(&CronInput{CronJob: cronJob(change), Now: moment("10:00:00")}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// TestLongMissed checks that years of missed minutes are processed at once.
func TestLongMissed(t *testing.T) {
	in := &CronInput{
		CronJob: cronJob(func(s *batchv1.CronJobSpec) { s.Schedule = "* * * * *" }),
		Since:   moment("10:00:00").AddDate(-30, 0, 0),
		Now:     moment("10:12:34"),
	}
	schedule, err := scheduleOf(in.CronJob)
	if err != nil {
		t.Fatal(err)
	}
	if steps := (&countedSchedule{Schedule: schedule}); in.due(steps).IsZero() || steps.calls > 100 {
		t.Fatalf("%d steps", steps.calls)
	}
	x, err := ExpandCron(in)
	if err != nil || clockOf(x.Start) != "10:12:00" || !x.Start.Truncate(24*time.Hour).Equal(in.Now.Truncate(24*time.Hour)) {
		t.Errorf("%v %v", x, err)
	}
}

// countedSchedule counts its calls, and ends after many.
type countedSchedule struct {
	cron.Schedule

	calls int
}

func (s *countedSchedule) Next(after time.Time) time.Time {
	if s.calls++; s.calls > 1000 {
		return time.Time{}
	}
	return s.Schedule.Next(after)
}

// TestJobOf checks the name, owner and time of a run's Job, and that its pods are found by its own labels.
func TestJobOf(t *testing.T) {
	pod := &v1.Pod{}
	pod.Namespace = "default"
	w := &podspec.Workload{
		CronJob:  cronJob(func(s *batchv1.CronJobSpec) { s.TimeZone = new("Europe/Berlin") }),
		Template: podspec.New(pod, "/tick.yaml", ""),
	}
	at := moment("10:10:00")
	job := JobOf(w, JobNameAt("tick", at), at)
	if job.Job.Name != "tick-29631490" || job.Job.Annotations[scheduledAt] != "2026-05-04T12:10:00+02:00" ||
		job.Template.Pod.Name != "tick-29631490-0" {
		t.Errorf("%+v, pod %s", job.Job.ObjectMeta, job.Template.Pod.Name)
	}
	if owner := metav1.GetControllerOf(job.Job); owner == nil || owner.Kind != podspec.KindCronJob {
		t.Errorf("owner %v", owner)
	}
	if labels := job.Template.Pod.Labels; labels[batchv1.JobNameLabel] != job.Job.Name ||
		job.Job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] != string(job.Job.UID) {
		t.Errorf("labels %v", labels)
	}
	if w.CronJob.Spec.JobTemplate.Annotations != nil || w.Template.Pod.Name != "" {
		t.Error("the CronJob was changed")
	}
}
