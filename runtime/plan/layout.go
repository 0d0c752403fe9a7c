package plan

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// layout is a decision on its way to be steps. The order is that of the kubelet's SyncPod,
// except that everything that can fail comes before the first stop.
type layout struct {
	*podstatus.Pod
	opts *Options
	*decision
	steps steps
}

// layOut lays a decision out in steps: what can fail first, then what stops,
// then what starts, and last what is swept up.
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
		l.removeCgroup(ended)
	} else {
		l.sweep(sandbox, ended)
	}
	return l.steps
}

// removeCgroup removes the cgroup of a pod that has finished (kubelet: SyncTerminatedPod). What
// could not be removed is tried again in the next pass.
func (l *layout) removeCgroup(ended []string) {
	if exists := l.Observed.CgroupExists; exists != nil && *exists || l.Observed.CgroupRemains {
		l.steps.add(l.cause.explains(Step{ID: "remove-cgroup", Kind: RemoveCgroup, Needs: after(ended), OnFailure: Continue}))
	}
}

// runSandbox creates the sandbox, if there shall be one, and returns the step that does.
func (l *layout) runSandbox(proof *proof, ended []string) []string {
	if !l.createSandbox {
		return nil
	}
	return []string{l.steps.add(l.cause.explains(Step{
		ID: "run-sandbox", Kind: RunSandbox, OnFailure: Abort, Attempt: l.attempt,
		Needs: after(l.steps.of(CreateCgroup), proof.volumes, ended),
	}))}
}

// startAndResize starts what starts, and changes what can change in place. The pod's own
// cgroup gets its limits before its containers get more, or after they have less.
func (l *layout) startAndResize(proof *proof, sandbox []string) {
	grows := podGrows(l.Pod)
	if grows {
		l.resizePod(nil)
	}
	l.startContainers(proof, sandbox)
	resized := l.resizeContainers()
	if !grows {
		l.resizePod(resized)
	}
}

func (l *layout) resizePod(waits []string) {
	if l.updatePod || len(l.updates) > 0 {
		l.steps.add(Step{
			ID: "resize-pod", Kind: UpdatePod, OnFailure: Continue, Needs: after(waits),
			Reason: model.Resized, Message: "the pod's resources changed",
		})
	}
}

// resizeContainers changes what can change in place, one container after the other: first
// what takes away, then what gives (kubelet: markContainerForUpdate).
func (l *layout) resizeContainers() []string {
	updates := slices.Clone(l.updates)
	slices.SortStableFunc(updates, func(a, b update) int { return order(a.grows, b.grows) })
	var ids []string
	for _, u := range updates {
		why := cause{reason: model.Resized, diff: diff.Diff{Changes: u.changes}}
		why.message = why.diff.Text()
		ids = append(ids, l.steps.add(why.explains(Step{
			ID: "update-" + u.ref.Name, Kind: UpdateContainer, OnFailure: Continue, Needs: after(l.steps.of(UpdatePod), ids),
			Container: u.ref.Name, ContainerType: u.ref.Type, ContainerID: u.container.ID,
		})))
	}
	return ids
}

// rotateLogs moves full logs aside, as a kubelet's log manager does: nobody else does
// it on a machine without one.
func (l *layout) rotateLogs() {
	for _, rec := range l.Containers {
		if !rec.LogFull || rec.State != model.Running || l.killPod || len(l.steps.record(rec.ID)) > 0 {
			continue
		}
		l.steps.add(Step{
			ID: byID("rotate-log", rec.ID), Kind: RotateLog, OnFailure: Continue,
			Container: rec.Name, ContainerType: l.refOf(rec).Type, ContainerID: rec.ID, Attempt: rec.RestartCount,
			Reason: model.LogFull, Message: "its log has grown to where it is rotated",
		})
	}
}

// refOf is the container of the manifest that a record is of; an empty one if there is none.
func (l *layout) refOf(rec *model.Container) podspec.ContainerRef {
	if l.Manifest == nil {
		return podspec.ContainerRef{}
	}
	ref, _ := podspec.FindContainer(l.Manifest, rec.Name)
	return ref
}

// order puts what is so after what is not.
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

// steps is a list of steps, with the questions that are asked of it while it grows.
type steps []Step

// add adds a step and returns its id, which is unique since no two kinds of steps share
// what stands before a name, and no name of a container or a volume has a slash.
func (l *steps) add(s Step) string {
	*l = append(*l, s)
	return s.ID
}

// ids are those of the steps that match.
func (l steps) ids(match func(*Step) bool) []string {
	var ids []string
	for i := range l {
		if match(&l[i]) {
			ids = append(ids, l[i].ID)
		}
	}
	return ids
}

// of are the steps of a kind.
func (l steps) of(kind Kind) []string {
	return l.ids(func(s *Step) bool { return s.Kind == kind })
}

// named are the steps of a kind for a container.
func (l steps) named(kind Kind, container string) []string {
	return l.ids(func(s *Step) bool { return s.Kind == kind && s.Container == container })
}

// record are the steps that stop, remove or update a record.
func (l steps) record(id string) []string {
	return l.ids(func(s *Step) bool { return s.ContainerID == id })
}

// does reports whether there is a step of a kind for a record.
func (l steps) does(kind Kind, id string) bool {
	return slices.ContainsFunc(l, func(s Step) bool { return s.Kind == kind && s.ContainerID == id })
}
