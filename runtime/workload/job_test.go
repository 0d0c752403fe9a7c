package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
)

// jobLife is a Job and its pods.
type jobLife struct {
	t      *testing.T
	now    time.Time
	w      *podspec.Workload
	status *batchv1.JobStatus
	pods   map[string]*Pod
}

const jobManifest = `apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  %s
  template:
    spec:
      restartPolicy: %s
      containers:
      - {name: app, image: "registry.local/app:1"}
`

func newJobLife(t *testing.T, policy v1.RestartPolicy, rest ...string) *jobLife {
	t.Helper()
	text := fmt.Sprintf(jobManifest, strings.Join(rest, "\n  "), policy)
	m, err := load.Loader{Workloads: true}.Parse(input.Source{Name: "-", Text: []byte(text)})
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return &jobLife{t: t, now: time.Unix(1e9, 0), w: m.Workloads[0], pods: map[string]*Pod{}}
}

// step carries out an expansion.
func (l *jobLife) step() *Expansion {
	in := &Input{Workload: l.w, Job: l.status, Now: l.now}
	for _, p := range l.pods {
		in.Pods = append(in.Pods, *p)
	}
	x := Expand(in)
	l.status = x.Job
	for _, ref := range x.Gone {
		delete(l.pods, ref.Name)
	}
	for _, d := range x.Pods {
		if l.pods[d.Pod.Name] == nil {
			l.pods[d.Pod.Name] = &Pod{Applied: d, Standing: model.Standing{Status: v1.PodStatus{Phase: v1.PodRunning}}}
		}
	}
	return x
}

// ends ends a pod with an exit code.
func (l *jobLife) ends(name string, code int32) {
	l.t.Helper()
	p := l.pods[name]
	if p == nil {
		l.t.Fatalf("there is no pod %s in %v", name, l.names())
	}
	p.Status.Phase = v1.PodSucceeded
	if code != 0 {
		p.Status.Phase = v1.PodFailed
	}
	p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", State: v1.ContainerState{
		Terminated: &v1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(l.now)},
	}}}
}

// names returns the names of the existing pods.
func (l *jobLife) names() (names []string) {
	for name := range l.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// want checks which pods exist after a step.
func (l *jobLife) want(when string, names ...string) *Expansion {
	l.t.Helper()
	x := l.step()
	if got := l.names(); !slices.Equal(got, names) {
		l.t.Errorf("%s: there are %v, want %v", when, got, names)
	}
	return x
}

// wantOver checks how the Job has ended.
func (l *jobLife) wantOver(how batchv1.JobConditionType, reason string) {
	l.t.Helper()
	if l.step(); len(l.status.Conditions) != 1 || l.status.Conditions[0].Type != how || l.status.Conditions[0].Reason != reason {
		l.t.Errorf("the conditions are %+v, want %s %s", l.status.Conditions, how, reason)
	}
}

func (l *jobLife) pass(d time.Duration) { l.now = l.now.Add(d) }

// TestJobCompletions checks that the allowed number of pods runs concurrently until enough have succeeded.
func TestJobCompletions(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "completions: 3", "parallelism: 2")
	l.want("at first", "work-0", "work-1")
	l.ends("work-0", 0)
	l.want("one has ended", "work-0", "work-1", "work-2")
	l.ends("work-1", 0)
	l.want("two have ended", "work-0", "work-1", "work-2")
	l.ends("work-2", 0)
	l.wantOver(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)
	if l.status.Succeeded != 3 || l.status.Active != 0 || l.status.CompletionTime == nil {
		t.Errorf("status %+v", l.status)
	}
	l.want("it is over", "work-0", "work-1", "work-2")
}

// TestJobFailures checks that a failed pod is retried after a doubling delay, until the limit is exceeded.
func TestJobFailures(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "backoffLimit: 2")
	l.want("at first", "work-0")
	l.ends("work-0", 1)
	if x := l.want("it failed", "work-0"); !x.Next.Equal(l.now.Add(10*time.Second)) || len(x.Waits) != 1 || x.Waits[0].Pod != "work-1" {
		t.Errorf("the next try is at %s, waits %v", x.Next, x.Waits)
	}
	l.pass(10 * time.Second)
	l.want("ten seconds later", "work-0", "work-1")
	l.ends("work-1", 1)
	l.pass(19 * time.Second)
	l.want("it failed again", "work-0", "work-1")
	l.pass(time.Second)
	l.want("twenty seconds later", "work-0", "work-1", "work-2")
	l.ends("work-2", 1)
	l.wantOver(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	l.pass(time.Hour)
	l.want("it is over", "work-0", "work-1", "work-2")
}

// TestIndexedJobs checks that each index succeeds once, that a retry has another name, and that the pod has its index.
func TestIndexedJobs(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "completionMode: Indexed", "completions: 3", "parallelism: 3")
	l.want("at first", "work-0", "work-1", "work-2")
	l.ends("work-1", 1)
	l.pass(10 * time.Second)
	l.want("one failed", "work-0", "work-1", "work-1-1", "work-2")
	pod := l.pods["work-1-1"].Applied.Pod
	env := pod.Spec.Containers[0].Env
	if pod.Spec.Hostname != "work-1" || pod.Annotations[batchv1.JobCompletionIndexAnnotation] != "1" ||
		len(env) != 1 || env[0].Name != "JOB_COMPLETION_INDEX" {
		t.Errorf("host name %q, annotations %v, variables %v", pod.Spec.Hostname, pod.Annotations, env)
	}
	l.ends("work-0", 0)
	l.ends("work-2", 0)
	if l.step(); l.status.CompletedIndexes != "0,2" || l.status.Succeeded != 2 {
		t.Errorf("status %+v", l.status)
	}
	l.ends("work-1-1", 0)
	l.wantOver(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)
	if l.status.CompletedIndexes != "0-2" {
		t.Errorf("completed are %s", l.status.CompletedIndexes)
	}
}

// TestLimitsOfIndexes checks that an index that failed too often is not retried, and that the others continue.
func TestLimitsOfIndexes(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "completionMode: Indexed", "completions: 2", "parallelism: 2", "backoffLimitPerIndex: 0")
	l.want("at first", "work-0", "work-1")
	l.ends("work-0", 1)
	l.pass(time.Hour)
	l.want("one failed", "work-0", "work-1")
	l.ends("work-1", 0)
	l.wantOver(batchv1.JobFailed, batchv1.JobReasonFailedIndexes)
	if *l.status.FailedIndexes != "0" {
		t.Errorf("failed are %s", *l.status.FailedIndexes)
	}
}

// TestMaxFailedIndexes checks that a Job fails at once when too many of its indexes have failed.
func TestMaxFailedIndexes(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "completionMode: Indexed",
		"completions: 3", "parallelism: 2", "backoffLimitPerIndex: 0", "maxFailedIndexes: 0")
	l.want("at first", "work-0", "work-1")
	l.ends("work-0", 1)
	l.wantOver(batchv1.JobFailed, batchv1.JobReasonMaxFailedIndexesExceeded)
	l.want("it is over", "work-0")
}

// TestPodFailurePolicy checks that the first matching rule counts.
func TestPodFailurePolicy(t *testing.T) {
	const policy = "podFailurePolicy: {rules: [" +
		"{action: FailJob, onExitCodes: {operator: In, values: [42]}}, {action: Ignore, onExitCodes: {operator: In, values: [7]}}]}"
	l := newJobLife(t, v1.RestartPolicyNever, "backoffLimit: 0", policy)
	l.want("at first", "work-0")
	l.ends("work-0", 7)
	l.pass(10 * time.Second)
	l.want("a failure that is ignored", "work-0", "work-1")
	if l.status.Failed != 0 {
		t.Errorf("%d failures count", l.status.Failed)
	}
	l.ends("work-1", 42)
	l.wantOver(batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy)
	want := "Container app for pod default/work-1 failed with exit code 42 matching FailJob rule at index 0"
	if l.status.Conditions[0].Message != want {
		t.Errorf("%q, want %q", l.status.Conditions[0].Message, want)
	}
}

// TestSuccessPolicy checks that a Job ends once the indexes of a rule have succeeded, and that active pods are stopped.
func TestSuccessPolicy(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "completionMode: Indexed", "completions: 3", "parallelism: 3",
		`successPolicy: {rules: [{succeededIndexes: "0-1", succeededCount: 1}]}`)
	l.want("at first", "work-0", "work-1", "work-2")
	l.ends("work-2", 0)
	l.want("another one ended", "work-0", "work-1", "work-2")
	l.ends("work-1", 0)
	l.wantOver(batchv1.JobComplete, batchv1.JobReasonSuccessPolicy)
	l.want("it is over", "work-1", "work-2")
}

// TestEndsOfJobs checks that a deadline, a suspension and the time to live end active pods.
func TestEndsOfJobs(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "activeDeadlineSeconds: 60", "ttlSecondsAfterFinished: 100")
	if x := l.want("at first", "work-0"); !x.Next.Equal(l.now.Add(time.Minute)) {
		t.Errorf("next check at %s", x.Next)
	}
	l.pass(time.Minute)
	l.wantOver(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)
	if x := l.want("after its deadline"); x.Expired {
		t.Error("it is to be deleted at once")
	}
	l.pass(100 * time.Second)
	if x := l.want("after its time to live"); !x.Expired {
		t.Error("it is not deleted")
	}
	l = newJobLife(t, v1.RestartPolicyNever, "parallelism: 2", "completions: 2")
	l.want("at first", "work-0", "work-1")
	l.ends("work-0", 0)
	l.w.Job.Spec.Suspend = new(true)
	l.want("suspended", "work-0")
	l.w.Job.Spec.Suspend = nil
	l.want("resumed", "work-0", "work-1")
}

// TestWorkQueues checks that without a number of completions no pod starts after the first success.
func TestWorkQueues(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyNever, "parallelism: 2")
	l.w.Job.Spec.Completions = nil
	l.want("at first", "work-0", "work-1")
	l.ends("work-0", 0)
	l.want("one has ended", "work-0", "work-1")
	l.ends("work-1", 0)
	l.wantOver(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)
}

// TestRestartsOfJobs checks that restarts of containers count against the limit with restartPolicy OnFailure.
func TestRestartsOfJobs(t *testing.T) {
	l := newJobLife(t, v1.RestartPolicyOnFailure, "backoffLimit: 3")
	l.want("at first", "work-0")
	l.pods["work-0"].Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", RestartCount: 3}}
	l.wantOver(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	l.want("it is over")
}

// TestRandomJobs checks with random failures that no more pods run than allowed, that no index succeeds twice, and that
// the Job ends.
func TestRandomJobs(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		completions, parallelism := 1+r.IntN(5), 1+r.IntN(4)
		rest := []string{fmt.Sprintf("completions: %d", completions), fmt.Sprintf("parallelism: %d", parallelism), "backoffLimit: 100"}
		if r.IntN(2) == 0 {
			rest = append(rest, "completionMode: Indexed")
		}
		l := newJobLife(t, v1.RestartPolicyNever, rest...)
		for range 2000 {
			l.step()
			if len(l.status.Conditions) > 0 {
				break
			}
			active := 0
			for _, name := range l.names() {
				if l.pods[name].Status.Phase != v1.PodRunning {
					continue
				}
				if active++; r.IntN(3) == 0 {
					l.ends(name, int32(r.IntN(2))) // 0 or 1
				}
			}
			if active > parallelism {
				t.Fatalf("seed %d: %d pods run", seed, active)
			}
			l.pass(time.Duration(r.IntN(60)) * time.Second)
		}
		l.wantOver(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)
		if int(l.status.Succeeded) != completions {
			t.Fatalf("seed %d: %d have ended well, want %d", seed, l.status.Succeeded, completions)
		}
	}
}
