package agent

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Stored is a pod as its checkpoint has it.
type Stored struct {
	Desired *podspec.Desired
	// Deleting reports whether its deletion has begun and was not finished.
	Deleting bool
	// Rejection is why it was not admitted; nil for one that was.
	Rejection *model.Rejection
	// Idle is set for one that has finished, was not admitted, or was evicted.
	Idle bool
}

// Records are the pods that have a checkpoint.
type Records interface {
	// All reads every checkpoint. One that cannot be read does not hide the others.
	All() (pods map[types.UID]Stored, unreadable map[types.UID]error, err error)
	// Read reads that of one pod; nil if it has none.
	Read(uid types.UID) (*Stored, error)
	// Remembered are the pods that have one, and PodsChangedAt is when one came or went last.
	Remembered() ([]types.UID, error)
	PodsChangedAt() time.Time
	// ObjectsChangedAt is when a ConfigMap or Secret that pods share was changed last.
	ObjectsChangedAt() time.Time
	// Redactor knows the Secrets of a pod, those of earlier manifests too.
	Redactor(d *podspec.Desired) *redaction.Redactor
}

// Checkpoints are the records in a state directory.
type Checkpoints struct {
	Layout state.Layout
	// Leaves reports whether a pod is taken for one that was applied by hand, whatever its record says: for an agent that keeps the
	// workloads of its sources and no others. Nil is for none.
	Leaves func(*podspec.Desired) bool
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

// Remembered are the pods that have a checkpoint.
func (c Checkpoints) Remembered() ([]types.UID, error) { return c.Layout.Pods().Remembered() }

// PodsChangedAt is when a pod came or went last.
func (c Checkpoints) PodsChangedAt() time.Time { return c.Layout.Pods().ChangedAt() }

// ObjectsChangedAt is when a ConfigMap or Secret was changed last.
func (c Checkpoints) ObjectsChangedAt() time.Time { return c.Layout.Objects().ChangedAt() }

// Redactor knows the Secrets of a pod.
func (c Checkpoints) Redactor(d *podspec.Desired) *redaction.Redactor {
	checkpoint, err := c.Layout.Pod(d.Pod.UID).Checkpoint().Read()
	if err != nil {
		checkpoint = &state.Checkpoint{Unreadable: true}
	}
	return checkpoint.Redactor(d)
}

// storedOf is the pod of a checkpoint; nil if it has none.
func (c Checkpoints) storedOf(one *state.Checkpoint) *Stored {
	if one.Applied == nil || one.Applied.Pod == nil {
		return nil
	}
	one.Applied.Stored = true
	if c.Leaves != nil && c.Leaves(one.Applied) {
		one.Applied.Keeper = ""
	}
	return &Stored{
		Desired: one.Applied, Deleting: one.Deletion != nil, Rejection: one.Rejection,
		Idle: one.Completion != nil || one.Rejection != nil || one.Eviction != nil,
	}
}

// mayEnd reports whether the agent may take a pod away that is remembered so: one that a source of
// its own brought, one whose deletion has begun, and one of which only leftovers are there. A pod
// that was applied by hand since is not.
func mayEnd(c *state.Checkpoint, own []string) bool {
	return c.Applied == nil || c.Deletion != nil || slices.Contains(own, c.Applied.Keeper)
}
