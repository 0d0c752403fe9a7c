package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// builder lays a decision out in steps: what can fail first, then what stops,
// then what starts, and last what is swept up.
type builder struct {
	v *view
	d *decision
	p *Plan

	// starts are the containers that start in this pass, in order.
	starts []start
	// blocked are containers that would start, had the manifest all they need.
	blocked map[string]bool
	// volumes and proofs are the ids of the steps that prove something: nothing
	// is stopped for a new sandbox before all of them are done.
	volumes []string
	proofs  []string
	// pulls maps an image to the step that pulls it.
	pulls map[string]string
	// checks maps a container to the step that proves its configuration.
	checks map[string]string
	// stops are the steps after which nothing of the old sandbox runs.
	stops []string
	// sandbox is the RunSandbox step, if there is one.
	sandbox string
}

func newBuilder(v *view, d *decision, p *Plan) *builder {
	return &builder{
		v: v, d: d, p: p,
		blocked: map[string]bool{},
		pulls:   map[string]string{},
		checks:  map[string]string{},
	}
}

// build fills the plan. Its order is that of the kubelet's SyncPod, except that
// everything that can fail comes before the first stop.
func (b *builder) build() {
	b.p.KillPod, b.p.CreateSandbox = b.d.killPod, b.d.createSandbox
	b.p.SandboxID, b.p.Attempt = b.d.sandboxID, b.d.attempt
	b.holdStarts()
	if b.sandboxHeld() || b.networkHeld() || b.recreationHeld() {
		b.p.KillPod, b.p.CreateSandbox = false, false
		b.finish()
		return
	}
	b.prepare()
	b.stop()
	b.create()
	b.rotateLogs()
	b.sweep()
	b.finish()
}

// prepare adds the steps that prove that the rest can be done.
func (b *builder) prepare() {
	if exists := b.v.obs.CgroupExists; b.d.createSandbox && exists != nil && !*exists {
		b.add(Step{ID: "create-cgroup", Kind: CreateCgroup, OnFailure: Abort, Reason: model.CgroupMissing, Message: "the pod has no cgroup yet"})
	}
	proven := b.provenStarts()
	b.prepareVolumes(len(proven) > 0)
	for _, s := range proven {
		b.pull(s)
	}
	for _, s := range proven {
		b.check(s)
	}
}

// stop adds the steps that stop and reset.
func (b *builder) stop() {
	if b.d.killPod {
		b.stopPod()
	} else {
		b.stopContainers()
		b.resetContainers()
		b.stopOutlived()
	}
	b.removeLeftovers()
}

// create adds the sandbox and what starts or changes in it.
func (b *builder) create() {
	if b.d.createSandbox {
		b.runSandbox()
	}
	grows := b.v.podGrows()
	if grows {
		b.updatePod(nil)
	}
	b.startContainers()
	ids := b.updateContainers()
	if !grows {
		b.updatePod(ids)
	}
}

// rotateLogs moves full logs aside, as a kubelet's log manager does: nobody else does
// it on a machine without one.
func (b *builder) rotateLogs() {
	for _, c := range b.v.containers {
		if !c.LogFull || c.State != model.Running || b.d.killPod || len(b.endsOfRecord(c.ID)) > 0 {
			continue
		}
		ref, _ := podspec.FindContainer(b.v.pod, c.Name)
		b.add(Step{
			ID: byID("rotate-log", c.ID), Kind: RotateLog, OnFailure: Continue,
			Container: c.Name, ContainerType: ref.Type, ContainerID: c.ID, Attempt: c.RestartCount,
			Reason: model.LogFull, Message: "its log has grown to where it is rotated",
		})
	}
}

// updateContainers changes what can change in place: first what takes away, then
// what gives (kubelet: markContainerForUpdate).
func (b *builder) updateContainers() []string {
	var shrink, grow []update
	for _, u := range b.d.updates {
		if b.v.grows(u) {
			grow = append(grow, u)
		} else {
			shrink = append(shrink, u)
		}
	}
	var ids []string
	for _, u := range slices.Concat(shrink, grow) {
		ids = append(ids, b.add(Step{
			ID: "update-" + u.ref.Name, Kind: UpdateContainer, OnFailure: Continue, After: after(b.stepsOf(UpdatePod), ids),
			Container: u.ref.Name, ContainerType: u.ref.Type, ContainerID: u.container.ID,
			Reason: model.Resized, Message: changeText(u.changes), Changes: u.changes,
		}))
	}
	return ids
}

// updatePod gives the pod's own cgroup its limits: before its containers get
// more, or after they have less.
func (b *builder) updatePod(waits []string) {
	if b.d.updatePod || len(b.d.updates) > 0 {
		b.add(Step{
			ID: "resize-pod", Kind: UpdatePod, OnFailure: Continue, After: waits,
			Reason: model.Resized, Message: "the pod's resources changed",
		})
	}
}

// add adds a step. Its id is unique since no two kinds of steps share what stands before a
// name, and no name of a container or a volume has a slash.
func (b *builder) add(s Step) string {
	b.p.Steps = append(b.p.Steps, s)
	return s.ID
}

func (b *builder) runSandbox() {
	after := slices.Concat(b.stepsOf(CreateCgroup), b.volumes, b.stops)
	b.sandbox = b.add(Step{
		ID: "run-sandbox", Kind: RunSandbox, After: after, OnFailure: Abort,
		Attempt: b.d.attempt, Reason: b.d.reason, Message: b.d.message, Changes: b.d.diff.changes, Unchanged: b.d.diff.unchanged,
	})
}

func (b *builder) stepsOf(kind Kind) []string {
	var ids []string
	for i := range b.p.Steps {
		if b.p.Steps[i].Kind == kind {
			ids = append(ids, b.p.Steps[i].ID)
		}
	}
	return ids
}

// finish adds what needs no step: what stays, what is held, what is waited for
// and what comes later.
func (b *builder) finish() {
	b.p.Holds = append(b.p.Holds, b.d.holds...)
	b.p.Keeps = append(b.p.Keeps, b.sandboxKeep()...)
	b.p.Keeps = append(b.p.Keeps, b.orderedKeeps()...)
	b.p.WaitingFor = append(b.p.WaitingFor, b.d.waiting...)
	b.addDrift()
	b.addNotes()
	b.addLater()
}

func (b *builder) sandboxKeep() []Keep {
	if b.d.createSandbox || b.d.killPod || b.v.active == "" {
		return nil
	}
	return []Keep{{ContainerID: b.v.active, State: string(model.SandboxReady), Reason: model.RunningAsWanted, Message: strings.Join(b.v.sandboxes[0].IPs, ", ")}}
}

// orderedKeeps puts the keeps in the order of the manifest, each container once
// and none that the pass stops.
func (b *builder) orderedKeeps() []Keep {
	var keeps []Keep
	for _, ref := range podspec.Containers(b.v.pod) {
		i := slices.IndexFunc(b.d.keeps, func(k Keep) bool { return k.Container == ref.Name })
		if i >= 0 && !b.stopsContainer(b.d.keeps[i].ContainerID) {
			keeps = append(keeps, b.d.keeps[i])
		}
	}
	return keeps
}

func (b *builder) stopsContainer(id string) bool {
	return slices.ContainsFunc(b.p.Steps, func(s Step) bool { return s.Kind == StopContainer && s.ContainerID == id })
}

// summarise counts the plan's objects: every container, and the sandbox like
// one.
func summarise(p *Plan) Summary {
	s := Summary{Keep: len(p.Keeps), Hold: len(p.Holds)}
	starts, stops, removes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range p.Steps {
		step := &p.Steps[i]
		switch step.Kind {
		case StartContainer, RunSandbox:
			starts[step.Container] = true
		case StopContainer, StopSandbox:
			stops[step.Container] = true
		case RemoveContainer, RemoveSandbox:
			removes[step.Container] = true
		case UpdateContainer, UpdatePod, UpdateVolume:
			s.Update++
		case CreateCgroup, RemoveCgroup, PrepareVolume, RemoveVolume, PullImage, CheckContainer, RotateLog, ArchiveLogs:
		}
	}
	s.countPairs(starts, stops, removes)
	return s
}

func (s *Summary) countPairs(starts, stops, removes map[string]bool) {
	for name := range starts {
		if stops[name] {
			s.Replace++
		} else {
			s.Start++
		}
	}
	for name := range stops {
		if !starts[name] && !removes[name] {
			s.Stop++
		}
	}
	for name := range removes {
		if !starts[name] {
			s.Remove++
		}
	}
}

// after joins lists of step ids without repeats.
func after(lists ...[]string) []string {
	var ids []string
	for _, id := range slices.Concat(lists...) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func byID(kind, id string) string { return fmt.Sprintf("%s-%s", kind, model.ShortID(id)) }

func firstOf(values ...string) string { return cmp.Or(values...) }
