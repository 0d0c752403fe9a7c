package plan

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// layout turns a decision into steps. Their order is that of the kubelet's SyncPod, except that everything that can
// fail comes before the first stop.
type layout struct {
	*podstatus.Pod
	opts *Options
	*decision
	steps steps
}

// layOut lays a decision out in steps: first what can fail, then stops, then starts, and last cleanup.
func layOut(pod *podstatus.Pod, opts *Options, d *decision) []Step {
	if d.held {
		return nil
	}
	l := &layout{Pod: pod, opts: opts, decision: d}
	proof := l.prove()
	ended := l.stop(proof)
	l.removeLeftovers(ended)
	sandbox := l.runSandbox(proof, ended)
	l.startAndResize(proof, sandbox)
	l.rotateLogs()
	if d.terminal {
		l.reclaimVolumes(ended)
		l.removeCgroup(ended)
	} else {
		l.sweep(sandbox, ended)
	}
	return l.steps
}

// reclaimVolumes removes the volumes of a finished pod of the API server (kubelet: SyncTerminatedPod). Those of other
// pods stay until they are deleted. If that fails, the next pass tries again.
func (l *layout) reclaimVolumes(ended []string) {
	if l.Observed.VolumesRemain {
		step := Step{ID: "remove-volumes", Kind: RemoveVolume, Needs: after(ended), OnFailure: Continue}
		l.steps.add(l.cause.explains(step))
	}
}

// removeCgroup removes the cgroup of a finished pod (kubelet: SyncTerminatedPod). If that fails, the next pass tries
// again.
func (l *layout) removeCgroup(ended []string) {
	if exists := l.Observed.CgroupExists; exists != nil && *exists || l.Observed.CgroupRemains {
		step := Step{ID: "remove-cgroup", Kind: RemoveCgroup, Needs: after(ended), OnFailure: Continue}
		l.steps.add(l.cause.explains(step))
	}
}

// runSandbox adds the step that creates the sandbox, if one is needed, and returns its ID.
func (l *layout) runSandbox(proof *proof, ended []string) []string {
	if !l.createSandbox {
		return nil
	}
	return []string{l.steps.add(l.cause.explains(Step{
		ID: "run-sandbox", Kind: RunSandbox, OnFailure: Abort, Attempt: l.attempt,
		Needs: after(l.steps.of(CreateCgroup), proof.volumes, ended),
	}))}
}

// startAndResize adds the starts and the changes in place. The pod's own cgroup gets its limits before its containers
// get more, or after they get less.
func (l *layout) startAndResize(proof *proof, sandbox []string) {
	first := podFirst(l.Pod, len(l.updates) > 0)
	switch {
	case first && podShrinks(l.Pod):
		l.resizePod(l.afterStops())
	case first:
		l.resizePod(nil)
	}
	l.startContainers(proof, sandbox)
	resized := l.resizeContainers()
	if !first {
		l.resizePod(l.afterStops(resized))
	}
}

// afterStops waits for steps and for all stops: what a stopping container uses does not count against a new limit
// (kubelet: SyncPod, steps 3 and 8), and its cgroup must be gone, because cgroup v1 allows no cgroup in another one
// with a lower limit of cpu.
func (l *layout) afterStops(steps ...[]string) Needs {
	return after(append(steps, l.steps.of(StopContainer))...)
}

// resizePod adds the change of the pod's cgroup. The cgroup does not shrink while a container keeps its old resources
// because its replacement cannot start.
func (l *layout) resizePod(waits Needs) {
	if blocked := l.keepsOld && podShrinks(l.Pod); (l.updatePod || len(l.updates) > 0) && !blocked {
		l.steps.add(Step{
			ID: "resize-pod", Kind: UpdatePod, OnFailure: Continue, Needs: waits,
			Reason: model.Resized, Message: "the pod's resources changed",
		})
	}
}

// resizeContainers changes resources in place, one container after the other. Containers that shrink come first
// (kubelet: markContainerForUpdate).
func (l *layout) resizeContainers() []string {
	updates := slices.Clone(l.updates)
	slices.SortStableFunc(updates, func(a, b update) int { return order(a.grows, b.grows) })
	var ids []string
	for _, u := range updates {
		why := cause{reason: model.Resized, diff: diff.Diff{Changes: u.changes}}
		why.message = why.diff.Text()
		ids = append(ids, l.steps.add(why.explains(Step{
			ID:            "update-" + u.ref.Name,
			Kind:          UpdateContainer,
			OnFailure:     Continue,
			Needs:         l.afterStops(l.steps.of(UpdatePod), ids),
			Container:     u.ref.Name,
			ContainerType: u.ref.Type,
			ContainerID:   u.container.ID,
		})))
	}
	return ids
}

// rotateLogs rotates full logs, as a kubelet's log manager does. On a machine without a kubelet only podctl does so.
func (l *layout) rotateLogs() {
	for _, rec := range l.Containers {
		if !rec.LogFull || rec.State != model.Running || l.killPod || len(l.steps.record(rec.ID)) > 0 {
			continue
		}
		l.steps.add(Step{
			ID: byID("rotate-log", rec.ID), Kind: RotateLog, OnFailure: Continue,
			Container: rec.Name, ContainerType: l.refOf(rec).Type, ContainerID: rec.ID, Attempt: rec.RestartCount,
			Reason: model.LogFull, Message: "its log has reached its size limit",
		})
	}
}

// refOf returns the manifest's container for a record; empty if there is none.
func (l *layout) refOf(rec *model.Container) podspec.ContainerRef {
	if l.Manifest == nil {
		return podspec.ContainerRef{}
	}
	ref, _ := podspec.FindContainer(l.Manifest, rec.Name)
	return ref
}

// order sorts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func byID(kind, id string) string { return fmt.Sprintf("%s-%s", kind, model.ShortID(id)) }

// steps is a list of steps with queries for the layout.
type steps []Step

// add adds a step and returns its ID. IDs are unique: no two kinds share a prefix, and names of containers and volumes
// contain no slash.
func (l *steps) add(s Step) string {
	*l = append(*l, s)
	return s.ID
}

// ids returns the IDs of the steps that match.
func (l steps) ids(match func(*Step) bool) []string {
	var ids []string
	for i := range l {
		if match(&l[i]) {
			ids = append(ids, l[i].ID)
		}
	}
	return ids
}

// of returns the steps of a kind.
func (l steps) of(kind Kind) []string {
	return l.ids(func(s *Step) bool { return s.Kind == kind })
}

// named returns the steps of a kind for a container.
func (l steps) named(kind Kind, container string) []string {
	return l.ids(func(s *Step) bool { return s.Kind == kind && s.Container == container })
}

// record returns the steps that stop, remove or update a record.
func (l steps) record(id string) []string {
	return l.ids(func(s *Step) bool { return s.ContainerID == id })
}

// does reports whether there is a step of a kind for a record.
func (l steps) does(kind Kind, id string) bool {
	return slices.ContainsFunc(l, func(s Step) bool { return s.Kind == kind && s.ContainerID == id })
}
