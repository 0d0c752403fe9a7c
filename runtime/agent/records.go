package agent

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/agent/owner"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Stored is a pod as recorded in its checkpoint.
type Stored struct {
	Desired *podspec.Desired
	// Deleting reports whether the pod's deletion has begun but not finished.
	Deleting bool
	// End is set for a pod that ends because its source deletes it.
	End *model.End
	// Rejection is the reason why the pod was not admitted. It is nil if it was admitted.
	Rejection *model.Rejection
	// Idle is set if the pod has finished, was not admitted, or was evicted.
	Idle bool
}

// record returns the record for the ledger.
func (s *Stored) record() owner.Record {
	r := owner.Record{Resource: owner.Pod(s.Desired), Deleting: s.Deleting}
	if s.End != nil {
		r.Ends = &s.End.GracePeriodSeconds
	}
	return r
}

// Records are the pods that have a checkpoint.
type Records interface {
	// All reads every checkpoint. An unreadable checkpoint does not hide the others.
	All() (pods map[types.UID]Stored, unreadable map[types.UID]error, err error)
	// Read reads the checkpoint of one pod. It returns nil if there is none.
	Read(uid types.UID) (*Stored, error)
	// CheckpointUIDs returns the pods that have a checkpoint. PodsChangedAt returns when a pod was last added or
	// removed.
	CheckpointUIDs() ([]types.UID, error)
	PodsChangedAt() time.Time
	// ObjectsChangedAt returns when a stored ConfigMap or Secret last changed.
	ObjectsChangedAt() time.Time
	// Redactor returns a redactor for the Secrets of a pod, including those of earlier manifests.
	Redactor(d *podspec.Desired) *redaction.Redactor
}

// Checkpoints reads the records in a state directory.
type Checkpoints struct {
	Layout state.Layout
	// Ignores reports whether to treat a pod as applied by hand, whatever its record contains. An agent that keeps only
	// the workloads of its sources uses it. If nil, no pod is treated so.
	Ignores func(*podspec.Desired) bool
}

// All reads every checkpoint.
func (c Checkpoints) All() (pods map[types.UID]Stored, unreadable map[types.UID]error, err error) {
	entries, err := c.Layout.Pods().Checkpoints()
	if err != nil {
		return nil, nil, err
	}
	pods, unreadable = make(map[types.UID]Stored, len(entries)), map[types.UID]error{}
	for _, entry := range entries {
		if entry.Err != nil {
			unreadable[entry.UID] = entry.Err
		} else if stored := c.storedOf(entry.Checkpoint); stored != nil {
			pods[entry.UID] = *stored
		}
	}
	return pods, unreadable, nil
}

// Read reads the checkpoint of one pod.
func (c Checkpoints) Read(uid types.UID) (*Stored, error) {
	checkpoint, err := c.Layout.Pod(uid).Checkpoint().Read()
	if err != nil {
		return nil, err
	}
	return c.storedOf(checkpoint), nil
}

// CheckpointUIDs returns the pods that have a checkpoint.
func (c Checkpoints) CheckpointUIDs() ([]types.UID, error) { return c.Layout.Pods().CheckpointUIDs() }

// PodsChangedAt returns when a pod was last added or removed.
func (c Checkpoints) PodsChangedAt() time.Time { return c.Layout.Pods().ChangedAt() }

// ObjectsChangedAt returns when a ConfigMap or Secret last changed.
func (c Checkpoints) ObjectsChangedAt() time.Time { return c.Layout.Objects().ChangedAt() }

// Redactor returns a redactor for the Secrets of a pod.
func (c Checkpoints) Redactor(d *podspec.Desired) *redaction.Redactor {
	checkpoint, err := c.Layout.Pod(d.Pod.UID).Checkpoint().Read()
	if err != nil {
		checkpoint = &state.Checkpoint{Unreadable: true}
	}
	return checkpoint.Redactor(d)
}

// storedOf returns the pod of a checkpoint. It returns nil if there is none.
func (c Checkpoints) storedOf(one *state.Checkpoint) *Stored {
	if one.Applied == nil || one.Applied.Pod == nil {
		return nil
	}
	one.Applied.Stored = true
	if c.Ignores != nil && c.Ignores(one.Applied) {
		one.Applied.Owner = ""
	}
	return &Stored{
		Desired: one.Applied, Deleting: one.Deletion != nil, End: one.End, Rejection: one.Rejection,
		Idle: one.IsTerminal(),
	}
}

// mayDelete reports whether the agent may delete or end a pod with this checkpoint. It may if one of its own sources
// provided the pod, if the deletion or the end has begun, or if only leftovers exist. It must not delete a pod that was
// applied by hand since.
func mayDelete(c *state.Checkpoint, own []string) bool {
	return c.Applied == nil || c.Leaving() != nil || slices.Contains(own, c.Applied.Owner)
}
