package plan

import (
	"cmp"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// Action is the effect of a pass on an object. If the steps of an object have several effects, the largest counts.
type Action int

// The actions.
const (
	// Kept leaves the object as it is. Held means that an action is needed and cannot be done now.
	Kept Action = iota + 1
	Held
	// Prepared creates prerequisites of containers, which start in this pass or in a later one.
	Prepared
	Rotated
	// CleanedUp removes the leftovers of a pod that ends: its volumes, cgroup and logs.
	CleanedUp
	// Removed removes records and stops nothing.
	Removed
	Updated
	// Stopped ends the object. Object.Removes reports whether its records go as well.
	Stopped
	Started
	// Replaced stops the object and starts it again.
	Replaced
)

// Object is a part of the pod and what a pass does to it. The summary, the rows of a printed plan and PendingRestarts
// are derived from it.
type Object struct {
	// Name is the name for users. Container is empty if the object is not a container.
	Name, Container string
	ContainerType   podspec.ContainerType

	Action Action
	// Removes reports whether records of the object are removed, at least older ones.
	Removes bool
	// Reason and Message belong to the step that decides the action, to the keep or to the hold.
	Reason  model.Reason
	Message string
	// Changes are the fields that made a start or an update necessary; Unchanged counts the others.
	Changes   []diff.Change
	Unchanged int
	// Steps and Holds are indexes into the lists of the plan. Checks belong to no object, because they change nothing.
	Steps, Holds []int

	place place
}

// IsSandbox reports whether the object is the pod's sandbox.
func (o *Object) IsSandbox() bool { return o.place == sandboxPlace || o.place == endingPlace }

// starts reports whether the pass starts the object.
func (o *Object) starts() bool { return o.Action == Started || o.Action == Replaced }

// place orders objects in the order in which they change.
type place int

const (
	readyPlace place = iota
	sandboxPlace
	// growingPlace is for the pod's own resources if they change before those of its containers.
	growingPlace
	initPlace
	regularPlace
	ephemeralPlace
	podPlace
	// endingPlace is for a sandbox that ends, which happens after its containers end.
	endingPlace
	remainsPlace
	// heldPlace is for the pod as a whole, oldPlace for older sandboxes.
	heldPlace
	oldPlace
)

func containerPlace(t podspec.ContainerType) place {
	switch t {
	case podspec.Init, podspec.Sidecar:
		return initPlace
	case podspec.Ephemeral:
		return ephemeralPlace
	case podspec.Regular:
	}
	return regularPlace
}

// recordObjects fills in the objects and the summary from the steps, the keeps and the holds. Steps that stop come
// before those that start.
func (p *Plan) recordObjects() {
	p.Objects = nil
	for i := range p.Keeps {
		k := &p.Keeps[i]
		o := p.containerOrSandbox(k.Container, k.ContainerType)
		o.Action, o.Reason, o.Message = Kept, k.Reason, k.Message
	}
	checked := map[string]podspec.ContainerType{}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == CheckContainer {
			checked[s.Container] = s.ContainerType
		} else {
			p.objectOf(s).take(s, i)
		}
	}
	for i := range p.Holds {
		h := &p.Holds[i]
		var o *Object
		if h.Container == "" {
			o = p.addObject(Object{Name: "pod", place: heldPlace})
		} else {
			o = p.containerOrSandbox(h.Container, podspec.Regular)
			o.ContainerType = cmp.Or(checked[h.Container], o.ContainerType)
		}
		o.Holds = append(o.Holds, i)
		if o.Action < Held {
			o.Action, o.Reason, o.Message = Held, h.Reason, h.Message
		}
	}
	p.orderObjects()
	p.Summary = summarise(p)
}

func (p *Plan) orderObjects() {
	for i := range p.Objects {
		switch o := &p.Objects[i]; {
		case o.place == sandboxPlace && o.Action == Stopped:
			o.place = endingPlace
		case o.place == podPlace && len(steps(p.Steps[o.Steps[0]:]).of(UpdateContainer)) > 0:
			o.place = growingPlace
		}
	}
	slices.SortStableFunc(p.Objects, func(a, b Object) int { return cmp.Compare(a.place, b.place) })
}

// containerOrSandbox finds the object of a container, or without a name that of the sandbox. It adds a missing one.
func (p *Plan) containerOrSandbox(name string, t podspec.ContainerType) *Object {
	one := Object{Name: name, Container: name, ContainerType: t, place: containerPlace(t)}
	if name == "" {
		one.Name, one.place = "sandbox", sandboxPlace
	}
	i := slices.IndexFunc(p.Objects, func(o Object) bool {
		return o.Container == name && o.IsSandbox() == one.IsSandbox()
	})
	if i < 0 {
		return p.addObject(one)
	}
	return &p.Objects[i]
}

func (p *Plan) addObject(o Object) *Object {
	p.Objects = append(p.Objects, o)
	return &p.Objects[len(p.Objects)-1]
}

// objectOf finds or adds the object that a step acts on.
func (p *Plan) objectOf(s *Step) *Object {
	at := readyPlace
	switch s.Kind {
	case PullImage, StartContainer, StopContainer, RemoveContainer, UpdateContainer:
		return p.containerOrSandbox(s.Container, s.ContainerType)
	case RunSandbox, StopSandbox:
		return p.containerOrSandbox("", "")
	case RemoveSandbox:
		if slices.ContainsFunc(p.Objects, func(o Object) bool { return o.IsSandbox() && o.Action > Kept }) {
			return p.containerOrSandbox("", "")
		}
		return p.addObject(Object{Name: "sandbox " + model.ShortID(s.SandboxID), place: oldPlace})
	case UpdatePod:
		at = podPlace
	case RotateLog, RemoveVolume, RemoveCgroup, ArchiveLogs:
		at = remainsPlace
	case CreateCgroup, PrepareVolume, UpdateVolume, CheckContainer, AllocateDevices:
	}
	return p.addObject(Object{Name: s.Object(), place: at})
}

// take adds a step of the plan to the object.
func (o *Object) take(s *Step, index int) {
	o.Steps = append(o.Steps, index)
	does := kinds[s.Kind].does
	o.Removes = o.Removes || does == Removed
	if does == Started && o.Action == Stopped {
		does = Replaced
	}
	if does <= o.Action {
		return
	}
	if o.Action != Prepared || does != Removed { // A pull for a later pass also explains why older records are removed.
		o.Reason, o.Message = s.Reason, s.Message
	}
	if o.Action = does; o.starts() || does == Updated {
		o.Changes, o.Unchanged = s.Changes, s.Unchanged
	}
}

// PendingRestarts returns the IDs of the containers that the plan stops and a pass starts again, by name. These are the
// replaced containers. With a new sandbox, or when the pod stops for a while, they include all regular containers,
// which may have to wait for init containers. podctl stops them, so their exit code does not show whether they have
// completed.
func (p *Plan) PendingRestarts() map[string]string {
	stopped := map[string]string{}
	resumes := p.Resumes || slices.ContainsFunc(p.Objects, func(o Object) bool { return o.IsSandbox() && o.starts() })
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Action != Replaced && (!resumes || o.Action != Stopped || o.ContainerType != podspec.Regular) {
			continue
		}
		for _, s := range p.StepsOf(o) {
			if s.Kind == StopContainer {
				stopped[o.Container] = s.ContainerID
			}
		}
	}
	return stopped
}

// StepsOf returns the steps of an object.
func (p *Plan) StepsOf(o *Object) []*Step {
	own := make([]*Step, 0, len(o.Steps))
	for _, i := range o.Steps {
		own = append(own, &p.Steps[i])
	}
	return own
}

// Object returns the object of a container; nil if the plan has none.
func (p *Plan) Object(container string) *Object {
	i := slices.IndexFunc(p.Objects, func(o Object) bool { return container != "" && o.Container == container })
	if i < 0 {
		return nil
	}
	return &p.Objects[i]
}

// Summary counts what a plan does. The sandbox counts like a container.
type Summary struct {
	Start   int `json:"start"`
	Stop    int `json:"stop"`
	Replace int `json:"replace"`
	Update  int `json:"update"`
	Remove  int `json:"remove"`
	Keep    int `json:"keep"`
	Hold    int `json:"hold"`
	// Prepare counts what is prepared for containers: the cgroup, volumes, and images for containers that start in a
	// later pass.
	Prepare int `json:"prepare,omitempty"`
	// Rotate counts logs, and CleanUp leftovers of a deleted pod: volumes, cgroup, logs.
	Rotate  int `json:"rotate,omitempty"`
	CleanUp int `json:"cleanUp,omitempty"`
	// Record counts fields that are only written into podctl's record.
	Record int `json:"record,omitempty"`
}

// summarise counts the objects of a plan. Older sandboxes count as one.
func summarise(p *Plan) Summary {
	s := Summary{Keep: len(p.Keeps), Hold: len(p.Holds), Record: len(p.Record)}
	old := false
	for i := range p.Objects {
		o := &p.Objects[i]
		switch o.Action {
		case Started:
			s.Start++
		case Replaced:
			s.Replace++
		case Stopped:
			if !o.Removes {
				s.Stop++
			}
		case Prepared:
			s.Prepare++
		case Rotated:
			s.Rotate++
		case CleanedUp:
			s.CleanUp++
		case Kept, Held, Removed, Updated: // An update also counts beside the stop of an older run.
		}
		if again := o.place == oldPlace && old; o.Removes && !o.starts() && !again {
			s.Remove++
		}
		old = old || o.place == oldPlace
	}
	for i := range p.Steps {
		if kinds[p.Steps[i].Kind].does == Updated {
			s.Update++
		}
	}
	return s
}
