package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// chooser visits the containers of a pod and collects the actions that its state requires.
type chooser struct {
	*podstatus.Pod
	opts *Options
	choice
}

// choose corresponds to the kubelet's computePodActions.
func choose(pod *podstatus.Pod, opts *Options) choice {
	c := &chooser{Pod: pod, opts: opts}
	c.judgeSandbox()
	switch {
	case pod.Over():
		c.finish()
	case pod.RestartsAll():
		c.resetAll()
	case c.createSandbox:
		c.startInNewSandbox()
	default:
		c.continueInSandbox()
	}
	if c.cause.reason == "" {
		c.cause = cause{reason: model.Completed, message: "the pod has finished"}
	}
	return c.choice
}

// judgeSandbox decides whether the pod needs a new sandbox, and its attempt.
func (c *chooser) judgeSandbox() {
	var next uint32
	if len(c.Sandboxes) > 0 {
		c.sandboxID, c.attempt = c.Sandboxes[0].ID, c.Sandboxes[0].Attempt
		next = c.attempt + 1
	}
	fault := c.SandboxFault()
	if fault == nil {
		return
	}
	if reserved, ok := c.Observed.Reserved[""]; ok {
		// The attempt is already in use.
		next = max(next, reserved+1)
	}
	c.killPod, c.createSandbox, c.attempt = true, true, next
	c.cause, c.edited = cause{reason: fault.Reason, message: fault.Message}, fault.Edited
	switch {
	case fault.OtherNetwork:
		c.sandboxID = ""
	case fault.Edited:
		c.cause.diff = sandboxChanges(c.Pod)
	}
}

// finish ends a completed pod: it stops running containers and the sandbox, and starts nothing.
func (c *chooser) finish() {
	c.terminal, c.createSandbox = true, false
	c.killPod = c.AnyRunning() || c.Active != "" || len(c.Sandboxes) > 0 && unstopped(c.Pod, &c.Sandboxes[0])
	c.cause.reason, c.cause.message = model.Completed, fmt.Sprintf("the pod has finished: %s", c.Phase)
	if c.DeadlineExceeded() && c.Phase != v1.PodSucceeded && c.Phase != v1.PodFailed {
		c.cause.reason = model.DeadlineExceeded
		seconds := *c.Manifest.Spec.ActiveDeadlineSeconds
		c.cause.message = fmt.Sprintf("active for longer than its activeDeadlineSeconds, %d", seconds)
	}
	for _, ref := range podspec.Containers(c.Manifest) {
		if rec := c.Newest(ref.Name); rec != nil && rec.State == model.Exited {
			c.keep(ref, rec)
		}
	}
}

// resetAll removes all records of the pod, so that the next pass starts from the first init container. The containers
// that caused the reset go last. While one of them is left, a later pass continues an interrupted reset.
func (c *chooser) resetAll() {
	regular, regularSource := c.resetsOf(podspec.RegularContainers(c.Manifest))
	inits, initSource := c.resetsOf(podspec.InitContainers(c.Manifest))
	c.resets = slices.Concat(regular, inits, regularSource, initSource)
	if !c.killPod {
		c.waiting = []waiting{{}}
	}
}

func (c *chooser) resetsOf(refs []podspec.ContainerRef) (targets, sources []reset) {
	for _, ref := range refs {
		for _, rec := range c.Containers {
			switch {
			case rec.Name != ref.Name:
			case rec.State != model.Exited:
				targets = append(targets, reset{container: rec, ref: ref, kill: true})
			case podstatus.TriggersRestartAll(ref.Container, rec):
				sources = append(sources, reset{container: rec, ref: ref})
			default:
				targets = append(targets, reset{container: rec, ref: ref})
			}
		}
	}
	return targets, sources
}

// startInNewSandbox chooses what starts in a sandbox that this pass creates. All init containers run again.
func (c *chooser) startInNewSandbox() {
	c.removed = leftovers(c.Pod)
	if c.Manifest.Spec.RestartPolicy == v1.RestartPolicyNever && c.attempt != 0 && len(c.Containers) > 0 {
		c.keepSandbox()
		return
	}
	var starts []start
	for _, ref := range podspec.RegularContainers(c.Manifest) {
		if !c.SucceededForGood(ref) {
			starts = append(starts, c.inNewSandbox(ref))
		}
	}
	if len(starts) == 0 && c.AnyRegular() {
		c.createSandbox = false
		return
	}
	if inits := podspec.InitContainers(c.Manifest); len(inits) > 0 {
		c.inits = []start{c.inNewSandbox(inits[0])}
		return
	}
	c.regulars = starts
}

// keepSandbox creates no new sandbox for a pod that runs once. It stops nothing for an edit, because the containers
// could not be started again.
func (c *chooser) keepSandbox() {
	c.createSandbox = false
	if c.edited {
		c.killPod, c.sandboxID = false, c.Sandboxes[0].ID
	}
	c.holds = append(c.holds, Hold{
		Reason: c.cause.reason, Blocking: true,
		Message: c.cause.message +
			", and a pod with restartPolicy Never gets no other sandbox; delete it to run it again",
	})
}

// inNewSandbox returns the start of a container in a new sandbox. A container that an edit stops has not ended by
// itself, so it starts again without delay.
func (c *chooser) inNewSandbox(ref podspec.ContainerRef) start {
	rec := c.Newest(ref.Name)
	if rec == nil {
		return start{ref: ref, cause: notCreated(), fresh: c.edited}
	}
	s := start{ref: ref, cause: cause{reason: model.SandboxReplaced, message: "its sandbox is replaced"}}
	s.fresh, s.diff = editedSince(c.Pod, ref.Container, rec)
	s.fresh = s.fresh || c.edited
	return s
}

func notCreated() cause { return cause{reason: model.NotCreated, message: "not created yet"} }

// continueInSandbox chooses what happens in the existing sandbox.
func (c *chooser) continueInSandbox() {
	for _, ref := range podspec.EphemeralContainers(c.Manifest) {
		// Debug containers start once in their life.
		if c.Newest(ref.Name) == nil {
			c.begin(start{ref: ref, cause: notCreated()})
		}
	}
	c.removed = leftovers(c.Pod)
	c.updatePod = podResized(c.Pod)
	if initialised := c.walkInits(); !initialised {
		return
	}
	kept := 0
	for _, ref := range podspec.RegularContainers(c.Manifest) {
		if c.judgeRegular(ref) {
			kept++
		}
	}
	if kept == 0 && len(c.regulars) == 0 {
		c.killPod, c.inits, c.updatePod = true, nil, false
	}
}

// begin adds a start to the list of its container type.
func (c *chooser) begin(s start) {
	switch s.ref.Type {
	case podspec.Init, podspec.Sidecar:
		c.inits = append(c.inits, s)
	case podspec.Regular:
		c.regulars = append(c.regulars, s)
	case podspec.Ephemeral:
		c.ephemerals = append(c.ephemerals, s)
	}
}

func (c *chooser) keep(ref podspec.ContainerRef, rec *model.Container) {
	c.keeps = append(c.keeps, keepOf(c.Pod, ref, rec))
}

// keepOf describes a container that stays as it is.
func keepOf(pod *podstatus.Pod, ref podspec.ContainerRef, rec *model.Container) Keep {
	k := Keep{
		Container:     ref.Name,
		ContainerType: ref.Type,
		ContainerID:   rec.ID,
		State:         string(rec.State),
		Reason:        model.RunningAsWanted,
		Message:       "running, started " + pod.Ago(rec.StartedAt),
	}
	switch init := ref.Type == podspec.Init; {
	case rec.State == model.Exited && init && podstatus.InitFailed(rec):
		k.Reason, k.Message = model.InitFailed, "failed, "+exitText(pod, rec)
	case rec.State == model.Exited && init:
		k.Reason, k.Message = model.InitDone, "done, "+exitText(pod, rec)
	case rec.State == model.Exited:
		k.Reason, k.Message = model.ContainerExited, exitText(pod, rec)
	case rec.State == model.Running && init:
		k.Reason = model.InitRunning
	}
	return k
}

// exitText describes how a container ended: "exited 1 20s ago: OOMKilled".
func exitText(pod *podstatus.Pod, rec *model.Container) string {
	if rec.Reason != "" && rec.Reason != "Completed" && rec.Reason != "Error" {
		return fmt.Sprintf("exited %d %s: %s", rec.ExitCode, pod.Ago(rec.FinishedAt), rec.Reason)
	}
	return fmt.Sprintf("exited %s %s", model.ExitText(rec.ExitCode), pod.Ago(rec.FinishedAt))
}

// leftovers returns the records that the wanted pod does not need: containers that left the manifest, and containers
// that an interrupted pass created and never started.
func leftovers(pod *podstatus.Pod) []removal {
	var records []removal
	for _, rec := range pod.Containers {
		switch {
		case leftManifest(pod, rec):
			why := cause{reason: model.RemovedFromSpec, message: "is no longer in the manifest"}
			records = append(records, removal{why, rec})
		case podstatus.NeverStarted(rec):
			why := cause{reason: model.NeverStarted, message: "was created and never started"}
			records = append(records, removal{why, rec})
		}
	}
	return records
}

// leftManifest reports whether the manifest does not name a container. A container that podctl debug added stays as
// long as its sandbox.
func leftManifest(pod *podstatus.Pod, rec *model.Container) bool {
	_, wanted := podspec.FindContainer(pod.Manifest, rec.Name)
	return !wanted && (!rec.Debug || rec.SandboxID != pod.Active)
}
