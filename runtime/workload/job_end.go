package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// isFinished reports whether a Job has succeeded or failed.
func (j *jobs) isFinished() bool { return !j.finishedAt().IsZero() }

// finishedAt returns when the Job ended; zero if it has not.
func (j *jobs) finishedAt() time.Time {
	if end := JobEnd(j.status); end != nil {
		return end.LastTransitionTime.Time
	}
	return time.Time{}
}

// finish ends a Job.
func (j *jobs) finish(how batchv1.JobConditionType, reason, message string) {
	now := metav1.NewTime(j.in.Now)
	j.status.Conditions = append(j.status.Conditions, batchv1.JobCondition{
		Type:               how,
		Status:             v1.ConditionTrue,
		Reason:             reason,
		Message:            message,
		LastProbeTime:      now,
		LastTransitionTime: now,
	})
	if how == batchv1.JobComplete {
		j.status.CompletionTime = &now
	}
}

// judge ends a Job that has failed, or that has enough succeeded pods.
func (j *jobs) judge() {
	if reason, message := j.failure(); reason != "" {
		j.finish(batchv1.JobFailed, reason, message)
		return
	}
	completions := j.job.Spec.Completions
	switch rule := j.successRule(); {
	case rule >= 0:
		j.finish(batchv1.JobComplete, batchv1.JobReasonSuccessPolicy, fmt.Sprintf("Matched rules at index %d", rule))
	case completions == nil && j.status.Succeeded > 0 && j.status.Active == 0,
		completions != nil && j.status.Succeeded >= *completions && j.status.Active == 0:
		j.finish(batchv1.JobComplete, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	}
}

// failure returns why a Job has failed, in the controller's words; empty if it has not.
func (j *jobs) failure() (reason, message string) {
	for _, t := range j.tries {
		if action, why := j.matches(t); action == batchv1.PodFailurePolicyActionFailJob {
			return batchv1.JobReasonPodFailurePolicy, why
		}
	}
	if int(j.status.Failed) > int(ptr.Deref(j.job.Spec.BackoffLimit, 6)) || j.restartedTooOften() {
		return batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	}
	if limit := j.job.Spec.ActiveDeadlineSeconds; limit != nil && j.status.StartTime != nil {
		deadline := j.status.StartTime.Add(time.Duration(*limit) * time.Second)
		if !j.in.Now.Before(deadline) {
			return batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"
		}
		j.out.next(deadline)
	}
	return j.indexFailure()
}

// restartedTooOften reports whether containers of pods with restartPolicy OnFailure have restarted too often.
func (j *jobs) restartedTooOften() bool {
	if j.job.Spec.Template.Spec.RestartPolicy != v1.RestartPolicyOnFailure {
		return false
	}
	restarts := int32(0)
	for _, t := range j.tries {
		if !t.isActive() || (!t.is(v1.PodRunning) && !t.is(v1.PodPending)) {
			continue
		}
		for _, c := range slices.Concat(t.Status.InitContainerStatuses, t.Status.ContainerStatuses) {
			restarts += c.RestartCount
		}
	}
	limit := ptr.Deref(j.job.Spec.BackoffLimit, 6)
	return restarts > 0 && restarts >= limit
}

// indexFailure returns why a Job with limits per index has failed.
func (j *jobs) indexFailure() (reason, message string) {
	if j.job.Spec.BackoffLimitPerIndex == nil {
		return "", ""
	}
	switch limit := j.job.Spec.MaxFailedIndexes; {
	case limit != nil && len(j.failed) > int(*limit):
		return batchv1.JobReasonMaxFailedIndexesExceeded,
			"Job has exceeded the specified maximal number of failed indexes"
	case len(j.failed) > 0 && len(j.failed)+int(j.status.Succeeded) >= int(ptr.Deref(j.job.Spec.Completions, 0)):
		return batchv1.JobReasonFailedIndexes, "Job has failed indexes"
	}
	return "", ""
}

// matches returns the action of the pod failure policy for a failed try, and why. The first matching rule counts.
func (j *jobs) matches(t *try) (action batchv1.PodFailurePolicyAction, why string) {
	if j.job.Spec.PodFailurePolicy == nil || !t.is(v1.PodFailed) {
		return "", ""
	}
	for i := range j.job.Spec.PodFailurePolicy.Rules {
		rule := &j.job.Spec.PodFailurePolicy.Rules[i]
		if rule.OnExitCodes != nil {
			if c := exited(t, rule.OnExitCodes); c != nil {
				why = fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d matching %s rule at index %d",
					c.Name, t.Applied.Pod.Namespace, t.Applied.Pod.Name, c.State.Terminated.ExitCode, rule.Action, i)
				return rule.Action, why
			}
			continue
		}
		for _, c := range t.Status.Conditions {
			if slices.ContainsFunc(rule.OnPodConditions, func(p batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
				return p.Type == c.Type && p.Status == c.Status
			}) {
				return rule.Action, fmt.Sprintf("Pod %s/%s has condition %s matching %s rule at index %d",
					t.Applied.Pod.Namespace, t.Applied.Pod.Name, c.Type, rule.Action, i)
			}
		}
	}
	return "", ""
}

// exited returns a container that failed with an exit code that matches a rule.
func exited(t *try, rule *batchv1.PodFailurePolicyOnExitCodesRequirement) *v1.ContainerStatus {
	for _, c := range slices.Concat(t.Status.ContainerStatuses, t.Status.InitContainerStatuses) {
		over := c.State.Terminated
		if over == nil || over.ExitCode == 0 || (rule.ContainerName != nil && *rule.ContainerName != c.Name) {
			continue
		}
		if slices.Contains(rule.Values, over.ExitCode) == (rule.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
			return &c
		}
	}
	return nil
}

// successRule returns the rule of the success policy that is met; -1 if there is none.
func (j *jobs) successRule() int {
	if j.job.Spec.SuccessPolicy == nil {
		return -1
	}
	return slices.IndexFunc(j.job.Spec.SuccessPolicy.Rules, func(rule batchv1.SuccessPolicyRule) bool {
		wanted := j.done
		if rule.SucceededIndexes != nil {
			wanted = numbersOf(*rule.SucceededIndexes)
		}
		met := 0
		for index := range wanted {
			if j.done[index] {
				met++
			}
		}
		required := ptr.Deref(rule.SucceededCount, int32(len(wanted))) // there are fewer
		return met > 0 && met >= int(required)
	})
}

// numbersOf parses the output of intervals. Validation has refused anything else.
func numbersOf(text string) map[int]bool {
	numbers := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		one, two, both := strings.Cut(part, "-")
		first, err := strconv.Atoi(one)
		last := first
		if both {
			last, _ = strconv.Atoi(two)
		}
		for n := first; err == nil && n <= last; n++ {
			numbers[n] = true
		}
	}
	return numbers
}
