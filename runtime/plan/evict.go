package plan

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// evictionGrace is how many seconds the containers of an evicted pod have to stop (kubelet:
// immediateEvictionGracePeriodSeconds).
const evictionGrace = 1

// evicted is why the pod is evicted; nil for one that is not. One that shall be made anew is evicted
// until nothing of it is left.
func (in *Input) evicted() *model.Eviction {
	before := in.Observed.Memory.Eviction
	switch {
	case before == nil:
		return in.Options.Evict
	case in.afterEviction() && before.Done:
		return nil
	}
	return before
}

// afterEviction reports whether a pod that was evicted shall be made anew: its manifest is another one,
// or the user restarts it.
func (in *Input) afterEviction() bool {
	m := &in.Observed.Memory
	if m.Eviction == nil || in.Desired == nil || in.Options.Stop {
		return false
	}
	return len(in.Options.Restart) > 0 || m.Applied == nil || !m.Applied.SameManifest(in.Desired)
}

// evict ends the pod, and holds it: everything stops and is removed but its record (kubelet: evictPod,
// cleanUpContainersInPod, SyncTerminatedPod).
func (p *Plan) evict(in *Input, why *model.Eviction) {
	opts := in.Options
	opts.GracePeriod = new(int64(evictionGrace))
	l := newRemoval(in, &opts, cause{reason: model.Evicted, message: "the pod is evicted: too little is left of " + why.Signal})
	ended := l.stopAndRemove(RemoveSupersededLogs)
	if len(l.steps) > 0 || !why.Done {
		l.removeData(ended)
	}
	p.Steps, p.Eviction = l.steps, why
	p.KillPod = len(ended) > 0
	p.Holds = []Hold{evictionHold(in, l.Pod, why)}
}

// evictionHold says why nothing runs of the pod, and how it runs again.
func evictionHold(in *Input, pod *podstatus.Pod, why *model.Eviction) Hold {
	h := Hold{
		Reason: model.Evicted, Blocking: true, Evicted: true, Status: why.Message,
		Message: fmt.Sprintf("evicted %s: %s; it stays so until its manifest changes: podctl restart %s makes it anew",
			pod.Ago(why.At), strings.TrimSuffix(strings.TrimSpace(why.Message), "."), in.Pod),
	}
	if in.afterEviction() {
		h.Unapplied = true
		h.Message = "the pod was evicted, and what is left of it is removed first"
	}
	return h
}
