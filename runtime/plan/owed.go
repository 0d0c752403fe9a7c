package plan

import (
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// PendingRestarts lists by name the containers that the plan stops so that they run again, with the ids
// of what it stops: those that it starts anew, and with a new sandbox all regular ones, which
// may have to wait for init containers. Their end is podctl's doing and says nothing of
// whether they have done their work.
func (p *Plan) PendingRestarts() map[string]string {
	starts, sandbox := map[string]bool{}, false
	for i := range p.Steps {
		s := &p.Steps[i]
		starts[s.Container] = starts[s.Container] || s.Kind == StartContainer
		sandbox = sandbox || s.Kind == RunSandbox
	}
	owes := map[string]string{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind == StopContainer && (starts[s.Container] || (sandbox && s.ContainerType == podspec.Regular)) {
			owes[s.Container] = s.ContainerID
		}
	}
	return owes
}

func (v *view) awaitsRestart(name string) bool {
	return model.AwaitsRestart(v.containers, name, v.obs.Memory.PendingRestarts[name])
}

// startOwed is the start of a container that podctl has stopped for it.
func (v *view) startOwed(ref podspec.ContainerRef) start {
	s := v.startAgain(ref)
	s.fresh, s.message = true, "it was stopped to run again, and has not been started"
	return s
}
