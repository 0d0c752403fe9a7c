package state

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
)

// checkpointVersion is the version of the checkpoint's form.
const checkpointVersion = 1

// Checkpoint is what podctl remembers of one pod and the runtime cannot. Losing it
// changes explanations and delays, and never stops a container.
//
// A field that a reader does not know is dropped: what changes the meaning of
// the others needs a new version.
type Checkpoint struct {
	// Version is that of the form; a newer one is not read.
	Version int `json:"version"`
	// Pod names the pod, so that it can be found by name.
	Pod model.PodRef `json:"pod,omitzero"`
	// AppliedAt is when the manifest was applied that was applied last.
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	// Source is where the manifest came from: an absolute path, a URL, or "-".
	Source string `json:"source,omitempty"`
	// Endpoint is the runtime the pod lives on.
	Endpoint string `json:"endpoint,omitempty"`
	// Memory is what the planner needs to know. The manifest in it has the values of Secrets,
	// which is why the file is for its owner alone.
	model.Memory
	// InFlight is what was about to be made in a pass that has not come to its end, by
	// container name and under ThePod for the sandbox.
	InFlight map[string]InFlight `json:"begun,omitempty"`
	// EarlierSecrets are the values of Secrets that were applied before and are no more, by
	// generation, the oldest first (KeepEarlierSecrets). They leave this file for nowhere.
	EarlierSecrets [][][]byte `json:"earlierSecrets,omitempty"`

	// Unreadable is set if this stands for a checkpoint that cannot be read.
	Unreadable bool `json:"-"`
}

// Clone returns a copy that can be changed while others read the original. Values that are only replaced as a whole are
// shared.
func (j *Checkpoint) Clone() *Checkpoint {
	c := *j
	c.InFlight, c.StartErrors, c.PendingRestarts = maps.Clone(j.InFlight), maps.Clone(j.StartErrors), maps.Clone(j.PendingRestarts)
	c.Backoffs, c.Probes = maps.Clone(j.Backoffs), maps.Clone(j.Probes)
	for id, records := range c.Probes {
		c.Probes[id] = maps.Clone(records)
	}
	if j.Actuated != nil {
		c.Actuated = &model.Actuated{Pod: j.Actuated.Pod, Containers: maps.Clone(j.Actuated.Containers)}
	}
	if j.Applied != nil {
		applied := *j.Applied
		c.Applied = &applied
	}
	return &c
}

// KnowsSecrets reports whether a redactor of this checkpoint and of a manifest that may be applied
// next has all Secrets that messages of the pod may repeat: one of them is enough, unless the
// manifest is none of a user's.
func (j *Checkpoint) KnowsSecrets(next *podspec.Desired) bool {
	return (j != nil && j.Applied != nil) || (next != nil && !next.Rebuilt)
}

// ThePod stands for the pod itself among the names of its containers.
const ThePod = ""

// InFlight is an attempt that was about to be made, and the resources it was to have; nil for
// a pod without any of its own.
type InFlight struct {
	Attempt   uint32                   `json:"attempt"`
	Resources *v1.ResourceRequirements `json:"resources,omitempty"`
}

// Settle takes what has begun under a name for made. Where nothing has, nothing changes.
func (j *Checkpoint) Settle(name string) {
	begun, ok := j.InFlight[name]
	if !ok || j.Actuated == nil {
		return
	}
	delete(j.InFlight, name)
	if name == ThePod {
		j.Actuated.Pod = begun.Resources
		return
	}
	if j.Actuated.Containers == nil {
		j.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	j.Actuated.Containers[name] = *cmp.Or(begun.Resources, &v1.ResourceRequirements{})
}

// name fills in which pod the checkpoint is about, as soon as it is known.
func (j *Checkpoint) name() {
	if j.Applied != nil && j.Applied.Pod != nil {
		j.Pod = model.RefOf(j.Applied.Pod)
	}
}

// The bounds of what is kept of earlier Secrets: so many generations, and bytes together.
const (
	earlierGenerations = 8
	earlierBytes       = 8 << 20
)

// Manifest is the pod as it was applied; nil if that is not known.
func (j *Checkpoint) Manifest() *v1.Pod {
	if j.Applied == nil {
		return nil
	}
	return j.Applied.Pod
}

// KeepEarlierSecrets keeps the values of Secrets that were applied last and that another
// manifest, which takes their place, has no more. Containers and programs from before may
// still repeat them, so they are left out of texts until the pod is deleted. Generations that
// differ count; the oldest are dropped.
func (j *Checkpoint) KeepEarlierSecrets(next *podspec.Desired) {
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

// SecretValues lists the values of all Secrets that the checkpoint knows, those of earlier
// generations too.
func (j *Checkpoint) SecretValues() [][]byte {
	var values [][]byte
	if j.Applied != nil {
		values = j.Applied.Objects.SecretValues()
	}
	for _, earlier := range j.EarlierSecrets {
		values = append(values, earlier...)
	}
	return values
}

// Redactor returns a redactor of all Secrets that the checkpoint knows, and of those of a
// manifest that may be applied next; nil for none. The checkpoint may be nil.
func (j *Checkpoint) Redactor(next *podspec.Desired) *redaction.Redactor {
	var values [][]byte
	if j != nil {
		values = j.SecretValues()
	}
	if next != nil {
		values = append(values, next.Objects.SecretValues()...)
	}
	return redaction.New(values...)
}

// WithoutSecrets is a copy of a checkpoint that may leave the machine: digests stand for
// the values of Secrets.
func (j *Checkpoint) WithoutSecrets() *Checkpoint {
	without := *j
	without.EarlierSecrets = nil
	if j.Applied != nil {
		without.Applied = j.Applied.WithoutSecrets()
	}
	return &without
}
