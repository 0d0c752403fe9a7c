package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// decision is what a pass comes to, before it is laid out in steps: the
// kubelet's podActions with a reason for each entry.
type decision struct {
	killPod       bool
	createSandbox bool
	sandboxID     string
	attempt       uint32
	reason        model.Reason
	message       string
	diff          difference

	// terminal tells that the pod has finished: whatever still runs is stopped
	// and nothing is started.
	terminal bool

	initStart      []start
	regularStart   []start
	ephemeralStart []start
	kills          []kill
	resets         []reset
	updates        []update
	updatePod      bool
	removed        []*model.Container
	holds          []Hold
	keeps          []Keep
	waiting        []string
}

// start is a container that shall be started.
type start struct {
	ref     podspec.ContainerRef
	reason  model.Reason
	message string
	diff    difference
	// fresh tells that the definition is new: no delay holds it.
	fresh bool
}

// kill is a running container, or one of unknown state, that shall be stopped.
type kill struct {
	container *model.Container
	ref       podspec.ContainerRef
	reason    model.Reason
	message   string
	diff      difference
}

// decide is the kubelet's computePodActions, with podctl's own rules for what
// the manifest no longer names (docs/design.md).
func decide(v *view) *decision {
	d := &decision{}
	judgeSandbox(v, d)
	if v.phaseTerminal() {
		d.finish(v)
		return d
	}
	if v.restartsAll() {
		d.resetAll(v)
		return d
	}
	if d.createSandbox {
		d.decideNewSandbox(v)
		return d
	}
	d.decideContainers(v)
	return d
}

// decideNewSandbox chooses what starts in a sandbox that is created in this
// pass: everything initialises anew.
func (d *decision) decideNewSandbox(v *view) {
	d.removed = v.leftovers()
	if v.pod.Spec.RestartPolicy == v1.RestartPolicyNever && d.attempt != 0 && len(v.containers) > 0 {
		d.createSandbox = false
		if d.edited() {
			// An edit stops nothing that it cannot start again.
			d.killPod, d.sandboxID = false, v.sandboxes[0].ID
		}
		d.holds = append(d.holds, Hold{
			Reason:  d.reason,
			Message: d.message + ", and restartPolicy Never gives the pod no other; delete it to run it again",
		})
		return
	}
	anew := func(ref podspec.ContainerRef) start {
		s := v.startAnew(ref)
		// What an edit stops has not ended by itself, and runs again at once.
		s.fresh = s.fresh || d.edited()
		return s
	}
	var starts []start
	for _, ref := range podspec.RegularContainers(v.pod) {
		if !v.succeededOnce(ref) {
			starts = append(starts, anew(ref))
		}
	}
	if len(starts) == 0 && v.anyRegularRecord() {
		d.createSandbox = false
		return
	}
	if inits := podspec.InitContainers(v.pod); len(inits) > 0 {
		d.initStart = []start{anew(inits[0])}
		return
	}
	d.regularStart = starts
}

// edited tells that the sandbox is replaced because the manifest asks for another one, which
// it cannot in a kubelet.
func (d *decision) edited() bool {
	return d.reason == model.SandboxConfigChanged || d.reason == model.NetworkModeChanged
}

// decideContainers chooses what happens in the sandbox that is there.
func (d *decision) decideContainers(v *view) {
	d.decideEphemeral(v)
	d.removed = v.leftovers()
	initialised := d.decideInit(v)
	if d.killPod || !initialised {
		return
	}
	kept := d.decideRegular(v)
	if kept == 0 && len(d.regularStart) == 0 {
		d.killPod = true
		d.initStart = nil
		return
	}
	d.updatePod = d.updatePod || v.podResized()
}

// decideEphemeral starts debug containers, each once in its life.
func (d *decision) decideEphemeral(v *view) {
	for _, ref := range podspec.EphemeralContainers(v.pod) {
		if v.newest(ref.Name) == nil {
			d.ephemeralStart = append(d.ephemeralStart, start{ref: ref, reason: model.NotCreated, message: "not created yet"})
		}
	}
}
