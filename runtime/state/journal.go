package state

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
)

// journalVersion is the version of the journal's form.
const journalVersion = 1

// Journal is what podctl remembers of one pod and the runtime cannot. Losing it
// changes explanations and delays, and never stops a container.
//
// A field that a reader does not know is dropped: what changes the meaning of
// the others needs a new version.
type Journal struct {
	// Version is that of the form; a newer one is not read.
	Version int `json:"version"`
	// Pod names the pod, so that it can be found by name.
	Pod model.PodRef `json:"pod,omitzero"`
	// Applied is the manifest that was applied last, complete with its ConfigMaps
	// and Secrets, which is why the file is for its owner alone.
	Applied   *podspec.Desired `json:"applied,omitempty"`
	AppliedAt time.Time        `json:"appliedAt,omitzero"`
	// Source is where the manifest came from: an absolute path, a URL, or "-".
	Source string `json:"source,omitempty"`
	// Generation counts the manifests that were applied. A process that waits
	// gives up when it has changed.
	Generation uint64 `json:"generation"`
	// Deletion is set once the deletion of the pod has begun.
	Deletion *Deletion `json:"deletion,omitempty"`
	// Endpoint is the runtime the pod lives on.
	Endpoint string `json:"endpoint,omitempty"`
	// StartTime is when the pod was applied first.
	StartTime time.Time `json:"startTime,omitzero"`
	// Completion is set once the pod has reached a terminal phase.
	Completion *model.Completion `json:"completion,omitempty"`
	// Probes holds what probes said, by container id and type.
	Probes map[string]map[model.ProbeType]model.ProbeRecord `json:"probes,omitempty"`
	// Backoffs holds the restart delays by container name; null when they are
	// lost and have to be estimated from the runtime's records.
	Backoffs map[string]model.Backoff `json:"backoffs"`
	// StartErrors holds the last failure to start, by container name.
	StartErrors map[string]model.StartError `json:"startErrors,omitempty"`
	// Actuated is what was applied last of cpu and memory.
	Actuated *model.Actuated `json:"actuated,omitempty"`
	// Begun is what was about to be made in a pass that has not come to its end, by
	// container name and under BegunPod for the sandbox.
	Begun map[string]Begun `json:"begun,omitempty"`
	// Owed holds the ids of containers that were stopped to run again, by container name.
	Owed map[string]string `json:"owed,omitempty"`
	// Left is what ran when podctl made its last pass.
	Left *model.LastRun `json:"left,omitempty"`
	// EarlierSecrets are the values of Secrets that were applied before and are no more, by
	// generation, the oldest first (KeepEarlierSecrets). They leave this file for nowhere.
	EarlierSecrets [][][]byte `json:"earlierSecrets,omitempty"`

	// Unreadable is set if this stands for a journal that cannot be read.
	Unreadable bool `json:"-"`
}

// KnowsSecrets reports whether a redactor of this journal and of a manifest that may be applied
// next has all Secrets that messages of the pod may repeat: one of them is enough, unless the
// manifest is none of a user's.
func (j *Journal) KnowsSecrets(next *podspec.Desired) bool {
	return (j != nil && j.Applied != nil) || (next != nil && !next.Rebuilt)
}

// Deletion is a deletion that has begun: since when, and how many seconds containers have
// to stop.
type Deletion struct {
	At                 time.Time `json:"at"`
	GracePeriodSeconds int64     `json:"gracePeriodSeconds"`
}

// Mark notes in the metadata of a pod that it is being deleted, as the API has it.
func (d *Deletion) Mark(pod *v1.Pod) {
	if d == nil {
		return
	}
	until := metav1.NewTime(d.At.Add(model.Seconds(d.GracePeriodSeconds)))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &until, &d.GracePeriodSeconds
}

// BegunPod stands for the pod itself among the names of its containers.
const BegunPod = ""

// Begun is an attempt that was about to be made, and the resources it was to have; nil for
// a pod without any of its own.
type Begun struct {
	Attempt   uint32                   `json:"attempt"`
	Resources *v1.ResourceRequirements `json:"resources,omitempty"`
}

// Settle takes what has begun under a name for made. Where nothing has, nothing changes.
func (j *Journal) Settle(name string) {
	begun, ok := j.Begun[name]
	if !ok || j.Actuated == nil {
		return
	}
	delete(j.Begun, name)
	if name == BegunPod {
		j.Actuated.Pod = begun.Resources
		return
	}
	if j.Actuated.Containers == nil {
		j.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	j.Actuated.Containers[name] = *cmp.Or(begun.Resources, &v1.ResourceRequirements{})
}

// Observed is the journal in the planner's words. Attempts that are taken are not in it:
// a pass finds them out by itself.
func (j *Journal) Observed() model.Memory {
	return model.Memory{
		Applied:         j.Applied,
		Deleting:        j.Deletion != nil,
		Generation:      j.Generation,
		StartTime:       j.StartTime,
		Completion:      j.Completion,
		Probes:          j.Probes,
		Backoffs:        j.Backoffs,
		StartErrors:     j.StartErrors,
		Actuated:        j.Actuated,
		PendingRestarts: j.Owed,
		LastRun:         j.Left,
	}
}

// name fills in which pod the journal is about, as soon as it is known.
func (j *Journal) name() {
	if j.Applied != nil && j.Applied.Pod != nil {
		j.Pod = model.RefOf(j.Applied.Pod)
	}
}

// The bounds of what is kept of earlier Secrets: so many generations, and bytes together.
const (
	earlierGenerations = 8
	earlierBytes       = 8 << 20
)

// KeepEarlierSecrets keeps the values of Secrets that were applied last and that another
// manifest, which takes their place, has no more. Containers and programs from before may
// still repeat them, so they are left out of texts until the pod is deleted. Generations that
// differ count; the oldest are dropped.
func (j *Journal) KeepEarlierSecrets(next *podspec.Desired) {
	if j.Applied == nil || next == nil {
		return
	}
	current := next.Objects.SecretValues()
	var gone [][]byte
	for _, value := range j.Applied.Objects.SecretValues() {
		if !slices.ContainsFunc(current, func(other []byte) bool { return bytes.Equal(value, other) }) {
			gone = append(gone, value)
		}
	}
	if len(gone) == 0 {
		return
	}
	kept := append(slices.Clone(j.EarlierSecrets), gone)
	for len(kept) > 1 && (len(kept) > earlierGenerations || bytesOf(kept) > earlierBytes) {
		kept = kept[1:]
	}
	j.EarlierSecrets = kept
}

func bytesOf(generations [][][]byte) int {
	total := 0
	for _, values := range generations {
		for _, value := range values {
			total += len(value)
		}
	}
	return total
}

// SecretValues lists the values of all Secrets that the journal knows, those of earlier
// generations too.
func (j *Journal) SecretValues() [][]byte {
	var values [][]byte
	if j.Applied != nil {
		values = j.Applied.Objects.SecretValues()
	}
	for _, earlier := range j.EarlierSecrets {
		values = append(values, earlier...)
	}
	return values
}

// Redactor returns a redactor of all Secrets that the journal knows, and of those of a
// manifest that may be applied next; nil for none. The journal may be nil.
func (j *Journal) Redactor(next *podspec.Desired) *redaction.Redactor {
	var values [][]byte
	if j != nil {
		values = j.SecretValues()
	}
	if next != nil {
		values = append(values, next.Objects.SecretValues()...)
	}
	return redaction.New(values...)
}

// WithoutSecrets is a copy of a journal that may leave the machine: digests stand for
// the values of Secrets.
func (j *Journal) WithoutSecrets() *Journal {
	without := *j
	without.EarlierSecrets = nil
	if j.Applied != nil {
		without.Applied = j.Applied.WithoutSecrets()
	}
	return &without
}

// upgradeDigests brings all digests of a journal into today's form. An older podctl wrote
// such as tell secret values to whoever tries them.
func (j *Journal) upgradeDigests() {
	for name, b := range j.Backoffs {
		b.Key = podspec.UpgradeKey(name, b.Key, j.Applied)
		j.Backoffs[name] = b
	}
	if j.Completion != nil {
		j.Completion.DesiredDigest = podspec.UpgradeDigest(j.Completion.DesiredDigest, j.Applied)
	}
}
