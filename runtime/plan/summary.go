package plan

// Summary counts what a plan does, the sandbox being counted like a container.
type Summary struct {
	Start   int `json:"start"`
	Stop    int `json:"stop"`
	Replace int `json:"replace"`
	Update  int `json:"update"`
	Remove  int `json:"remove"`
	Keep    int `json:"keep"`
	Hold    int `json:"hold"`
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
