package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// The delays before a Job's next try (DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff of the controller).
const (
	firstDelay = 10 * time.Second
	maxDelay   = 10 * time.Minute
)

// jobs is the expansion of a Job. Each try is a separate pod: NAME-0, NAME-1 and so on, and in an indexed Job
// NAME-INDEX, then NAME-INDEX-1 and so on. Finished pods stay with their logs until the Job is deleted.
type jobs struct {
	*expanding
	job    *batchv1.Job
	status *batchv1.JobStatus
	tries  []*try
	// done are the indexes that have succeeded, failed those that are not retried.
	done, failed map[int]bool
}

// try is a pod of a Job.
type try struct {
	Pod
	// index is the completion index, or the number of the pod. again counts the tries of an index.
	index, again int
}

func (t *try) is(phase v1.PodPhase) bool { return t.Status.Phase == phase }

// isActive reports whether a try has not ended yet.
func (t *try) isActive() bool { return !t.is(v1.PodSucceeded) && !t.is(v1.PodFailed) && !t.Deleting }

// ended returns when the last container of a try ended; zero if unknown.
func (t *try) ended() (at time.Time) {
	for _, c := range slices.Concat(t.Status.InitContainerStatuses, t.Status.ContainerStatuses) {
		if over := c.State.Terminated; over != nil && over.FinishedAt.After(at) {
			at = over.FinishedAt.Time
		}
	}
	return at
}

// runJob determines the pods of a Job and its status (syncJob of the controller).
func (x *expanding) runJob(job *batchv1.Job) {
	j := &jobs{expanding: x, job: job, status: x.in.Job.DeepCopy(), done: map[int]bool{}, failed: map[int]bool{}}
	if j.status == nil {
		j.status = &batchv1.JobStatus{}
	}
	x.out.Job = j.status
	j.read()
	if j.status.StartTime == nil && !ptr.Deref(job.Spec.Suspend, false) {
		j.status.StartTime = &metav1.Time{Time: x.in.Now}
	}
	j.count()
	if !j.isFinished() {
		j.judge()
	}
	switch {
	case j.isFinished():
		j.end()
	case ptr.Deref(job.Spec.Suspend, false):
		j.stopActive()
	default:
		j.fill()
	}
}

// read finds the tries among the existing pods.
func (j *jobs) read() {
	for _, pod := range j.in.Pods {
		if index, again, ok := j.numbers(pod.Applied.Pod.Name); ok {
			j.tries = append(j.tries, &try{Pod: pod, index: index, again: again})
		} else {
			j.out.gone(pod.Applied)
		}
	}
	slices.SortFunc(j.tries, func(a, b *try) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.again, b.again))
	})
	for _, t := range j.tries {
		j.out.Pods = append(j.out.Pods, t.Applied)
	}
}

// numbers returns the numbers in the name of a pod.
func (j *jobs) numbers(name string) (index, again int, ok bool) {
	text, ok := strings.CutPrefix(name, j.job.Name+"-")
	one, two, both := strings.Cut(text, "-")
	index, err := strconv.Atoi(one)
	if err == nil && both {
		again, err = strconv.Atoi(two)
	}
	return index, again, ok && err == nil && j.tryName(index, again) == name
}

func (j *jobs) tryName(index, again int) string {
	name := j.maker.name(index)
	if again > 0 {
		name = fmt.Sprintf("%s-%d", name, again)
	}
	return name
}

func (j *jobs) isIndexed() bool {
	return ptr.Deref(j.job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// count counts the tries in the status. An ended try counts while its pod exists.
func (j *jobs) count() {
	s := j.status
	s.Active, s.Succeeded, s.Failed, s.Ready = 0, 0, 0, new(int32(0))
	for _, t := range j.tries {
		_, ready := readySince(&t.Status)
		switch {
		case t.is(v1.PodSucceeded):
			s.Succeeded++
			j.done[t.index] = true
		case t.is(v1.PodFailed):
			if action, _ := j.matches(t); action != batchv1.PodFailurePolicyActionIgnore {
				s.Failed++
			}
			if j.isIndexFailed(t) {
				j.failed[t.index] = true
			}
		case t.isActive():
			s.Active++
			if ready {
				*s.Ready++
			}
		}
	}
	if j.isIndexed() {
		s.Succeeded, s.CompletedIndexes = int32(len(j.done)), intervals(j.done) // there are fewer pods
		if j.job.Spec.BackoffLimitPerIndex != nil {
			s.FailedIndexes = new(intervals(j.failed))
		}
	}
}

// isIndexFailed reports whether an index is not retried after a failed try.
func (j *jobs) isIndexFailed(t *try) bool {
	limit := j.job.Spec.BackoffLimitPerIndex
	if limit == nil {
		return false
	}
	action, _ := j.matches(t)
	return action == batchv1.PodFailurePolicyActionFailIndex || j.failuresOf(t.index) > int(*limit)
}

// failuresOf returns how many failed tries of an index count.
func (j *jobs) failuresOf(index int) (count int) {
	for _, t := range j.tries {
		if action, _ := j.matches(t); t.index == index &&
			t.is(v1.PodFailed) && action != batchv1.PodFailurePolicyActionIgnore {
			count++
		}
	}
	return count
}

// end stops the active pods of a finished Job, and deletes the Job when its time to live has passed.
func (j *jobs) end() {
	j.stopActive()
	ttl := j.job.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return
	}
	expires := j.finishedAt().Add(time.Duration(*ttl) * time.Second)
	if j.in.Now.Before(expires) {
		j.out.next(expires)
		return
	}
	j.out.Expired = true
	for _, t := range j.tries {
		j.drop(t)
	}
}

// stopActive deletes the unfinished tries. A try that could not be observed may have ended, so it stays with its logs.
func (j *jobs) stopActive() {
	for _, t := range j.tries {
		if t.isActive() && t.Unknown == nil {
			j.drop(t)
		}
	}
	j.status.Active, j.status.Ready = 0, new(int32(0))
}

// drop deletes a pod.
func (j *jobs) drop(t *try) {
	if slices.Contains(j.out.Pods, t.Applied) {
		j.out.Pods = slices.DeleteFunc(j.out.Pods, func(d *podspec.Desired) bool { return d == t.Applied })
		j.out.gone(t.Applied)
	}
}

// fill creates the pods that are still needed, up to the allowed parallelism.
func (j *jobs) fill() {
	room := int(ptr.Deref(j.job.Spec.Parallelism, 1)) - int(j.status.Active)
	if j.isIndexed() {
		j.fillIndexes(room)
		return
	}
	needed := room
	switch completions := j.job.Spec.Completions; {
	case completions != nil:
		needed = min(room, int(*completions)-int(j.status.Succeeded)-int(j.status.Active))
	case j.status.Succeeded > 0:
		return
	}
	number := 0
	if n := len(j.tries); n > 0 {
		number = j.tries[n-1].index + 1
	}
	if needed <= 0 || j.waits(j.tries, j.maker.name(number)) {
		return
	}
	for ; needed > 0; needed-- {
		j.try(number, 0)
		number++
	}
}

// fillIndexes creates pods for the lowest indexes that have neither succeeded nor are active.
func (j *jobs) fillIndexes(room int) {
	together := j.job.Spec.BackoffLimitPerIndex == nil
	for index := 0; index < int(ptr.Deref(j.job.Spec.Completions, 0)) && room > 0; index++ {
		var own []*try
		for _, t := range j.tries {
			if t.index == index {
				own = append(own, t)
			}
		}
		if slices.ContainsFunc(own, func(t *try) bool { return !t.is(v1.PodFailed) || j.isIndexFailed(t) }) {
			continue
		}
		failed, again := own, 0
		if together {
			failed = j.tries
		}
		if n := len(own); n > 0 {
			again = own[n-1].again + 1
		}
		if j.waits(failed, j.tryName(index, again)) {
			continue
		}
		j.try(index, again)
		room--
	}
}

// try creates one pod.
func (j *jobs) try(index, again int) {
	d := j.maker.pod(index)
	d.Pod.Name = j.tryName(index, again)
	d.Pod.UID = podspec.UID(d.Pod.Namespace, d.Pod.Name)
	if j.isIndexed() {
		number(d.Pod, index)
		d.Pod.Spec.Hostname = cmp.Or(d.Pod.Spec.Hostname, j.maker.name(index))
	}
	j.out.Pods = append(j.out.Pods, d)
	j.status.Active++
}

// number sets the index of a pod (addCompletionIndexEnvVariables of the controller).
func number(pod *v1.Pod, index int) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	const variable = "JOB_COMPLETION_INDEX"
	for _, ref := range podspec.Containers(pod) {
		if !slices.ContainsFunc(ref.Env, func(e v1.EnvVar) bool { return e.Name == variable }) {
			ref.Env = append(ref.Env, v1.EnvVar{Name: variable, ValueFrom: &v1.EnvVarSource{
				FieldRef: &v1.ObjectFieldSelector{
					APIVersion: "v1",
					FieldPath:  fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation),
				},
			}})
		}
	}
}

// waits reports whether the next try has to wait because tries failed in a row, and records until when.
func (j *jobs) waits(tries []*try, name string) bool {
	var ended []*try
	for _, t := range tries {
		if !t.isActive() && !t.Deleting {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(ended, func(a, b *try) int { return b.ended().Compare(a.ended()) })
	failures := 0
	for failures < len(ended) && ended[failures].is(v1.PodFailed) {
		failures++
	}
	if failures == 0 {
		return false
	}
	until := ended[0].ended().Add(min(firstDelay<<min(failures-1, 10), maxDelay))
	if !until.After(j.in.Now) {
		return false
	}
	j.out.next(until)
	j.out.wait(name, fmt.Sprintf("It is created %s after the last failure, the %s in a row.",
		until.Sub(ended[0].ended()), ordinal(failures)))
	return true
}

// ordinal formats a number as an ordinal: 1st.
func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// intervals formats numbers as in the status of a Job: 0,2-4.
func intervals(numbers map[int]bool) string {
	sorted := slices.Sorted(maps.Keys(numbers))
	var parts []string
	for i := 0; i < len(sorted); {
		last := i
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		part := strconv.Itoa(sorted[i])
		if last > i {
			part += "-" + strconv.Itoa(sorted[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}
