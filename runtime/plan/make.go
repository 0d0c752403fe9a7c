package plan

import (
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Make decides what one pass does to a pod. It is the whole of podctl's
// judgement: the same input gives the same plan, byte for byte.
func Make(in *Input) *Plan {
	p := &Plan{
		APIVersion: model.APIVersion,
		Kind:       "Plan",
		Pod:        in.Pod,
		Runtime:    RuntimeRef{Name: in.Observed.Runtime.Name, Version: in.Observed.Runtime.Version},
		ObservedAt: in.Now,
		Steps:      []Step{},
		Holds:      []Hold{},
		Keeps:      []Keep{},
		Drift:      []string{},
		Notes:      []string{},
		WaitingFor: []string{},
		Later:      []string{},
	}
	v := newView(in)
	switch {
	case in.Desired == nil:
		makeDeletion(v, p)
	case in.Desired.Stored && in.Observed.Memory.Deleting:
		holdDeleted(p)
	default:
		newBuilder(v, decide(v), p).build()
	}
	p.DesiredDigest = in.Desired.Digest()
	read := v.facts()
	p.ObservedDigest = read.digest()
	if in.Options.KeepBasis {
		p.Basis = basisOf(in.Desired, read)
	}
	p.Complete = len(p.Steps) == 0 && len(p.Holds) == 0 && len(p.WaitingFor) == 0
	p.Summary = summarise(p)
	return p
}

// keepOf describes a container that stays as it is.
func (v *view) keepOf(ref podspec.ContainerRef, c *model.Container) Keep {
	k := Keep{
		Container:     ref.Name,
		ContainerType: ref.Type,
		ContainerID:   c.ID,
		State:         string(c.State),
		Reason:        model.RunningAsWanted,
		Message:       "running, started " + v.ago(c.StartedAt),
	}
	if c.State == model.Exited {
		k.Reason, k.Message = model.ContainerExited, exitText(v, c)
	}
	if c.State == model.Exited && ref.Type == podspec.Init {
		k.Reason, k.Message = model.InitDone, "done, "+exitText(v, c)
	}
	if c.State == model.Running && ref.Type == podspec.Init {
		k.Reason = model.InitRunning
	}
	return k
}
