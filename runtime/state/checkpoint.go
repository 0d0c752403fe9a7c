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

// checkpointVersion is the version of the checkpoint's format.
const checkpointVersion = 1

// Checkpoint holds podctl's state of one pod that the runtime does not have. Losing it changes explanations and delays,
// but never stops a container.
//
// Readers ignore unknown fields. A field that changes the meaning of others needs a new version.
type Checkpoint struct {
	// Version is the version of the format. A newer one is not read.
	Version int `json:"version"`
	// Pod identifies the pod, so that it can be found by name.
	Pod model.PodRef `json:"pod,omitzero"`
	// AppliedAt is the time of the last apply.
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	// Source is where the manifest came from: an absolute path, a URL, or "-".
	Source string `json:"source,omitempty"`
	// Endpoint is the address of the runtime with the pod.
	Endpoint string `json:"endpoint,omitempty"`
	// Memory is the state that the planner needs. Its manifest has values of Secrets, so only the owner may read the
	// file. With MemorySecrets of the manifest, the file has digests in their place, and no earlier values.
	model.Memory
	// InFlight holds the attempts that an unfinished pass was about to create, by container name. The sandbox is under
	// ThePod.
	InFlight map[string]InFlight `json:"inFlight,omitempty"`
	// EarlierSecrets holds values of Secrets that were applied before, by generation, the oldest first
	// (KeepEarlierSecrets). They never leave this file.
	EarlierSecrets [][][]byte `json:"earlierSecrets,omitempty"`

	// Unreadable is set if this value replaces a checkpoint that cannot be read.
	Unreadable bool `json:"-"`
}

// Clone returns a copy that can be changed while other goroutines read the original. Both share values that are only
// replaced as a whole.
func (j *Checkpoint) Clone() *Checkpoint {
	c := *j
	c.InFlight, c.StartErrors = maps.Clone(j.InFlight), maps.Clone(j.StartErrors)
	c.PendingRestarts = maps.Clone(j.PendingRestarts)
	c.Backoffs, c.Probes = maps.Clone(j.Backoffs), maps.Clone(j.Probes)
	for id, records := range c.Probes {
		c.Probes[id] = maps.Clone(records)
	}
	if j.Actuated != nil {
		actuated := *j.Actuated
		actuated.Containers = maps.Clone(actuated.Containers)
		c.Actuated = &actuated
	}
	if j.Applied != nil {
		applied := *j.Applied
		c.Applied = &applied
	}
	return &c
}

// ThePod stands for the pod itself among the names of its containers.
const ThePod = ""

// InFlight is an attempt that was about to be created. Resources is nil for a pod without resources of its own.
type InFlight struct {
	Attempt   uint32                   `json:"attempt"`
	Resources *v1.ResourceRequirements `json:"resources,omitempty"`
}

// MarkCreated records the attempt in flight under a name as created. Without one it changes nothing.
func (j *Checkpoint) MarkCreated(name string) {
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

// name sets the pod of the checkpoint as soon as it is known.
func (j *Checkpoint) name() {
	if j.Applied != nil && j.Applied.Pod != nil {
		j.Pod = model.RefOf(j.Applied.Pod)
	}
}

// Limits for earlier Secrets: the number of generations, and the bytes in total.
const (
	earlierGenerations = 8
	earlierBytes       = 8 << 20
)

// Manifest returns the applied pod, or nil if it is not known.
func (j *Checkpoint) Manifest() *v1.Pod {
	if j.Applied == nil {
		return nil
	}
	return j.Applied.Pod
}

// KeepEarlierSecrets keeps the last applied values of Secrets that next does not have. Containers and programs started
// before may still print them, so they are redacted until the pod is deleted. A generation counts only if it differs.
// The oldest ones are dropped first.
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
	j.keepEarlier(gone)
}

// keepEarlier adds a generation of values.
func (j *Checkpoint) keepEarlier(gone [][]byte) {
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

// SecretValues returns the values of all Secrets in the checkpoint, including earlier generations.
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

// Redactor returns a redactor for all Secrets of the checkpoint and of a manifest that may be applied next. Both may be
// nil. It returns nil if there are no Secrets.
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

// WithoutSecrets returns a copy that may leave the machine: digests replace the values of Secrets.
func (j *Checkpoint) WithoutSecrets() *Checkpoint {
	without := *j
	without.EarlierSecrets = nil
	if j.Applied != nil {
		without.Applied = j.Applied.WithoutSecrets()
	}
	return &without
}
