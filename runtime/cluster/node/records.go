package node

import (
	"log/slog"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// records are the checkpoints of the pods of the API server.
type records struct {
	layout state.Layout
	log    *slog.Logger
}

// has reports whether a pod has a checkpoint on this machine, or may have one.
func (r records) has(uid types.UID) bool {
	if statedir.CheckName(statedir.KindUID, string(uid)) != nil {
		return false // No file can have this name.
	}
	c, err := r.layout.Pod(uid).Checkpoint().Read()
	return err != nil || c.Applied != nil
}

// pods returns the pods with a checkpoint. ok is false if a checkpoint cannot be read.
func (r records) pods() (pods []*podspec.Desired, ok bool) {
	applied, unreadable, err := state.Applied(r.layout)
	if err != nil {
		r.log.Warn("cannot read the records of pods", "error", err.Error())
	}
	for _, p := range applied {
		if p.Desired.FromCluster() {
			pods = append(pods, p.Desired)
		}
	}
	return pods, err == nil && len(unreadable) == 0
}

// hasEnded reports whether a pod has ended for good, or is about to. An unreadable record counts as one of a running
// pod.
func (r records) hasEnded(uid types.UID) bool {
	c, err := r.layout.Pod(uid).Checkpoint().Read()
	return err == nil && (c.Leaving() != nil || c.IsTerminal())
}

// mayUse reports whether a pod may use its volumes: it has not finished, and was not rejected or evicted.
func (r records) mayUse(uid types.UID) bool {
	c, err := r.layout.Pod(uid).Checkpoint().Read()
	return err != nil || !c.IsTerminal()
}
