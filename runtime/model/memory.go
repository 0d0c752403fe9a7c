package model

import (
	"maps"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
)

// Memory is podctl's record of a pod, which no runtime keeps. The checkpoint on disk, the planner and the snapshot
// share it. If it is lost, explanations and delays change, but no container is stopped.
type Memory struct {
	// Generation counts the applied manifests. A waiting process gives up if it has changed.
	Generation uint64 `json:"generation,omitempty"`
	// StartTime is when the pod was first applied; zero if unknown.
	StartTime time.Time `json:"startTime,omitzero"`
	// Completion is set once the pod has reached a terminal phase, and for an evicted pod once it has stopped.
	Completion *Completion `json:"completion,omitempty"`
	// Rejection explains why the manifest applied last was not admitted; nil if it was.
	Rejection *Rejection `json:"rejection,omitempty"`
	// Eviction explains why the manifest applied last does not run any more; nil if it does.
	Eviction *Eviction `json:"eviction,omitempty"`
	// StartErrors holds the last failure to start, by container name.
	StartErrors map[string]StartError `json:"startErrors,omitempty"`
	// LastRun lists the objects that ran at the end of podctl's last pass; nil if unknown.
	LastRun *LastRun `json:"lastRun,omitempty"`
	// Deletion is set once the deletion of the pod has begun.
	Deletion *Deletion `json:"deletion,omitempty"`
	// End is set once the pod ends because its source is deleting it; nil if it does not.
	End *End `json:"end,omitempty"`
	// PendingRestarts holds the IDs of containers that were stopped and must run again, by container name. A container
	// that has run since does not count.
	PendingRestarts map[string]string `json:"pendingRestarts,omitempty"`
	// Applied is the manifest applied last, complete with its ConfigMaps and Secrets; nil if unknown.
	Applied *podspec.Desired `json:"applied,omitempty"`
	// Probes holds the verdicts by container ID and probe type.
	Probes map[string]map[ProbeType]ProbeRecord `json:"probes,omitempty"`
	// BootID identifies the start of the kernel in which the delays were recorded; empty if unknown.
	BootID string `json:"bootID,omitempty"`
	// Backoffs holds the restart delays by container name. Nil means that they are lost and must be estimated from the
	// runtime's records.
	Backoffs map[string]Backoff `json:"backoffs,omitzero"`
	// Adopted holds the hashes of the adopted definitions of containers without a readable one, by container ID.
	Adopted map[string]string `json:"adopted,omitempty"`
	// Actuated holds the cpu and memory applied last; nil if unknown.
	Actuated *Actuated `json:"actuated,omitempty"`
	// PendingResize is the resize of a pod of the API server that does not fit yet; nil if there is none. Applied then
	// has the earlier resources.
	PendingResize *PendingResize `json:"pendingResize,omitempty"`
	// Resizing is the resize of a pod of the API server that was admitted and has not ended; nil if there is none.
	Resizing *Resizing `json:"resizing,omitempty"`
	// Conditions are the conditions of the pod with their last changes, recorded by a process that watches the pod;
	// empty without one.
	Conditions map[v1.PodConditionType]Transition `json:"conditions,omitempty"`
}

// InBoot returns the memory without the delays of an earlier start of the kernel. A kubelet keeps them in memory, so it
// starts containers and pulls images at once after a reboot (kubelet: doBackOff, imagePullBackOff). An unknown id
// changes nothing.
func (m Memory) InBoot(id string) Memory {
	if id == "" || m.BootID == id {
		return m
	}
	if m.BootID != "" {
		m.Backoffs = map[string]Backoff{}
		m.StartErrors = maps.Clone(m.StartErrors)
		for name, e := range m.StartErrors {
			m.StartErrors[name] = e.retried()
		}
	}
	m.BootID = id
	return m
}

// Transition is the time since which a condition has its status.
type Transition struct {
	Status v1.ConditionStatus `json:"status"`
	At     time.Time          `json:"at"`
}

// Deletion is an unfinished deletion: when it began, and how many seconds containers have to stop.
type Deletion struct {
	At                 time.Time `json:"at"`
	GracePeriodSeconds int64     `json:"gracePeriodSeconds"`
}

// Again returns the mark for another request of a deletion. It keeps the time of the first request. The grace period
// can only get shorter (API server: BeforeDelete). Zero seconds mean that there is nothing left to stop.
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

// Mark sets the deletion fields in the metadata of a pod, as the API does.
func (d *Deletion) Mark(pod *v1.Pod) {
	if d == nil {
		return
	}
	until := metav1.NewTime(d.At.Add(Seconds(d.GracePeriodSeconds)))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &until, &d.GracePeriodSeconds
}

// StillRuns reports whether containers of a pod that is over may run: it has exceeded its deadline or is being evicted,
// and the pass that stops them has not ended.
func (m *Memory) StillRuns() bool {
	if m.LastRun == nil {
		return false
	}
	var ends map[string]ContainerEnd
	if m.Completion != nil {
		ends = m.Completion.Containers
	}
	for name := range m.LastRun.Containers {
		if _, ended := ends[name]; !ended {
			return true
		}
	}
	return false
}

// Completion records that a pod finished, so that it does not run again if the runtime loses its records.
type Completion struct {
	Phase v1.PodPhase `json:"phase"`
	At    time.Time   `json:"at"`
	// DesiredDigest is the digest of the manifest that ran.
	DesiredDigest string `json:"desiredDigest,omitempty"`
	// Containers holds the ends of containers by name; one that never ran is missing.
	Containers map[string]ContainerEnd `json:"containers,omitempty"`
}

// ContainerEnd is the end of a container of a finished pod. The status shows it if the runtime has no record of it any
// more.
type ContainerEnd struct {
	// ID is the runtime's ID, prefixed with the runtime's name.
	ID         string    `json:"id,omitempty"`
	ExitCode   int32     `json:"exitCode"`
	Reason     string    `json:"reason,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Restarts   int32     `json:"restarts,omitempty"`
}

// StartError is the last failure to start one container. Its reason is the kubelet's waiting reason, for example
// ErrImagePull or CreateContainerConfigError.
type StartError struct {
	Reason  Reason    `json:"reason"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Until is when the failed pull is retried; zero if passes do not wait for that.
	Until time.Time `json:"until,omitzero"`
	// Image is the image whose pull failed, and Credentials identifies the pull secrets of the try. Pause is the length
	// of the back-off, which doubles with each failure in a row. They are set only where passes respect the back-off.
	Image       string        `json:"image,omitempty"`
	Credentials string        `json:"credentials,omitempty"`
	Pause       time.Duration `json:"pause,omitempty"`
}

// PullFailure returns the last failure of a pod's containers to pull an image with the same credentials; the zero value
// if there is none. Corrected credentials are tried at once.
func PullFailure(all map[string]StartError, image, credentials string) (last StartError) {
	for _, e := range all {
		if e.Pause > 0 && e.Image == image && e.Credentials == credentials && e.At.After(last.At) {
			last = e
		}
	}
	return last
}

// Postponed returns the failure to pull an image with its back-off: ten seconds, doubled with each failure in a row of
// the pod to pull the same image with the same credentials, at most five minutes (kubelet: imagePullBackOff). A failure
// before the end of the back-off belongs to the same try.
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

// Holds reports whether the image is not retried yet. A failure in the future holds nothing, because the clock was set
// back.
func (e *StartError) Holds(now time.Time) bool { return now.Before(e.Until) && !AheadOf(now, e.At) }

// retried returns the failure without its back-off.
func (e StartError) retried() StartError {
	e.Until, e.Image, e.Credentials, e.Pause = time.Time{}, "", "", 0
	return e
}

// Line returns the failure in one line.
func (e StartError) Line() string {
	message := strings.Join(strings.Fields(e.Message), " ")
	if message == "" {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + message
}

// Actuated holds the resources applied last, of those that can change in place. A container that is missing has no
// record.
type Actuated struct {
	Containers map[string]v1.ResourceRequirements `json:"containers"`
	Pod        *v1.ResourceRequirements           `json:"pod,omitempty"`
	// Cgroup is what the cgroup of the pod has (podspec.Totals); nil if unknown.
	Cgroup *v1.ResourceRequirements `json:"cgroup,omitempty"`
}

// LastRun lists the objects that ran at the end of podctl's last pass. If something is missing since, another program
// stopped or removed it.
type LastRun struct {
	Sandbox string `json:"sandbox,omitempty"`
	// IPs are the last addresses of the pod. No runtime reports them for an ended sandbox.
	IPs []string `json:"ips,omitempty"`
	// Containers holds IDs by name.
	Containers map[string]string `json:"containers,omitempty"`
	// Reset names the containers whose records a restart of all containers removed and that were not started since.
	Reset []string `json:"reset,omitempty"`
	// AfterReset names those started since in the same sandbox. Nothing else shows how their previous run ended.
	AfterReset []string `json:"afterReset,omitempty"`
	// Stopped are the IDs of sandboxes that podctl stopped and that still exist.
	Stopped []string `json:"stopped,omitempty"`
}
