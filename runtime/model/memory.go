package model

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
)

// Memory is what podctl remembers of a pod and the runtime cannot: the checkpoint on disk, the
// planner and the snapshot share it. Losing it changes explanations and delays, and never
// stops a container.
type Memory struct {
	// Generation counts the manifests that were applied. A process that waits gives up when
	// it has changed.
	Generation uint64 `json:"generation,omitempty"`
	// StartTime is when the pod was applied first; zero when unknown.
	StartTime time.Time `json:"startTime,omitzero"`
	// Completion is set once the pod has reached a terminal phase.
	Completion *Completion `json:"completion,omitempty"`
	// Rejection is why the manifest that was applied last was not admitted; nil if it was.
	Rejection *Rejection `json:"rejection,omitempty"`
	// Eviction is why the manifest that was applied last is not run any more; nil if it is.
	Eviction *Eviction `json:"eviction,omitempty"`
	// StartErrors holds the last failure to start, by container name.
	StartErrors map[string]StartError `json:"startErrors,omitempty"`
	// LastRun is what ran when podctl made its last pass; nil when unknown.
	LastRun *LastRun `json:"left,omitempty"`
	// Deletion is set once the deletion of the pod has begun.
	Deletion *Deletion `json:"deletion,omitempty"`
	// PendingRestarts holds the ids of containers that were stopped to run again, by
	// container name. One that has run since does not count.
	PendingRestarts map[string]string `json:"owed,omitempty"`
	// Applied is the manifest as it was applied last, complete with its ConfigMaps and
	// Secrets; nil when unknown.
	Applied *podspec.Desired `json:"applied,omitempty"`
	// Probes holds the verdicts by container id and probe type.
	Probes map[string]map[ProbeType]ProbeRecord `json:"probes,omitempty"`
	// Backoffs holds the restart delays by container name; nil when they are
	// lost and have to be estimated from the runtime's records.
	Backoffs map[string]Backoff `json:"backoffs,omitzero"`
	// Adopted holds the hashes of the definitions that containers were adopted with, by
	// container id, of those that do not bear a readable one themselves.
	Adopted map[string]string `json:"adopted,omitempty"`
	// Actuated is what was applied last of cpu and memory; nil when unknown.
	Actuated *Actuated `json:"actuated,omitempty"`
	// Conditions are those of the pod as somebody who watches it has seen them change; empty if
	// nobody has.
	Conditions map[v1.PodConditionType]Transition `json:"conditions,omitempty"`
}

// Transition is from when on a condition has its status.
type Transition struct {
	Status v1.ConditionStatus `json:"status"`
	At     time.Time          `json:"at"`
}

// Deletion is a deletion that has begun: since when, and how many seconds containers have
// to stop.
type Deletion struct {
	At                 time.Time `json:"at"`
	GracePeriodSeconds int64     `json:"gracePeriodSeconds"`
}

// Again is the mark of a deletion that is asked for once more. It keeps the time of the first request; the grace period can only get
// shorter (API server: BeforeDelete). Zero seconds mean that nothing is left to stop.
func (d *Deletion) Again(next Deletion) *Deletion {
	if d == nil {
		return &next
	}
	grace := d.GracePeriodSeconds
	if next.GracePeriodSeconds > 0 {
		grace = min(grace, next.GracePeriodSeconds)
	}
	return &Deletion{At: d.At, GracePeriodSeconds: grace}
}

// Mark notes in the metadata of a pod that it is being deleted, as the API has it.
func (d *Deletion) Mark(pod *v1.Pod) {
	if d == nil {
		return
	}
	until := metav1.NewTime(d.At.Add(Seconds(d.GracePeriodSeconds)))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &until, &d.GracePeriodSeconds
}

// Completion remembers that a pod finished, so that the loss of the runtime's
// records does not make it run again.
type Completion struct {
	Phase v1.PodPhase `json:"phase"`
	At    time.Time   `json:"at"`
	// DesiredDigest is of the manifest that ran.
	DesiredDigest string `json:"desiredDigest,omitempty"`
	// Containers holds how containers ended, by name; one that never ran is not in it.
	Containers map[string]ContainerEnd `json:"containers,omitempty"`
}

// ContainerEnd is how a container of a finished pod ended. The status shows it when the runtime has no record of it any more.
type ContainerEnd struct {
	// ID is the runtime's, with its name before it.
	ID         string    `json:"id,omitempty"`
	ExitCode   int32     `json:"exitCode"`
	Reason     string    `json:"reason,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Restarts   int32     `json:"restarts,omitempty"`
}

// StartError is the last failure to start one container: the kubelet shows it
// as the waiting reason (semantics: ErrImagePull, CreateContainerError …).
type StartError struct {
	Reason  Reason    `json:"reason"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Until is when the image that could not be pulled is tried again; zero when nobody waits
	// for that.
	Until time.Time `json:"until,omitzero"`
	// Image is the image that could not be pulled, Credentials stands for the pull secrets that it was tried with, and Pause
	// is how long its back-off is, which doubles with each failure in a row. They are kept where passes respect the back-off.
	Image       string        `json:"image,omitempty"`
	Credentials string        `json:"credentials,omitempty"`
	Pause       time.Duration `json:"pause,omitempty"`
}

// PullFailure is the last failure of a pod's containers to pull an image with the same credentials; the zero value if
// there is none. What is corrected is tried again at once.
func PullFailure(all map[string]StartError, image, credentials string) (last StartError) {
	for _, e := range all {
		if e.Pause > 0 && e.Image == image && e.Credentials == credentials && e.At.After(last.At) {
			last = e
		}
	}
	return last
}

// Postponed is the failure to pull an image with its back-off: ten seconds, doubled with each failure in a row of the pod
// to pull the same image with the same credentials, five minutes at most (kubelet: imagePullBackOff). One that comes before
// the back-off is over belongs to the same try.
func (e StartError) Postponed(image, credentials string, before StartError) StartError {
	e.Image, e.Credentials, e.Pause = image, credentials, BackoffInitial
	switch {
	case before.Pause == 0:
	case before.Holds(e.At):
		e.Pause, e.Until = before.Pause, before.Until
		return e
	default:
		e.Pause = min(2*before.Pause, backoffMax)
	}
	e.Until = e.At.Add(e.Pause)
	return e
}

// Holds reports whether the image is not tried again yet. A failure in the future holds nothing: the clock was set back.
func (e *StartError) Holds(now time.Time) bool { return now.Before(e.Until) && !AheadOf(now, e.At) }

// Line is the failure in one line.
func (e StartError) Line() string {
	message := strings.Join(strings.Fields(e.Message), " ")
	if message == "" {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + message
}

// Actuated is what was applied last of the resources that can change in place.
// A container that is missing in it has no record.
type Actuated struct {
	Containers map[string]v1.ResourceRequirements `json:"containers"`
	Pod        *v1.ResourceRequirements           `json:"pod,omitempty"`
}

// LastRun is what ran when podctl made its last pass. What is missing of it since
// then was stopped or removed by somebody else.
type LastRun struct {
	Sandbox string `json:"sandbox,omitempty"`
	// IPs are the addresses that the pod had last, which no runtime reports of a sandbox
	// that has ended.
	IPs []string `json:"ips,omitempty"`
	// Containers holds ids by name.
	Containers map[string]string `json:"containers,omitempty"`
	// Reset names the containers whose records a restart of all containers has taken
	// away, and which were not started since.
	Reset []string `json:"reset,omitempty"`
	// AfterReset names those that were started since in the same sandbox: nothing else shows
	// how their run before ended.
	AfterReset []string `json:"afterReset,omitempty"`
	// Stopped are sandboxes that podctl has stopped, and which are still there.
	Stopped []string `json:"stopped,omitempty"`
}
