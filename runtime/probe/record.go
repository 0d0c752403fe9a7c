package probe

import (
	"fmt"
	"time"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// recordProbes records the events of probes that did not succeed, in a kubelet's words, and marks those that let a
// container count as started or ready.
func recordProbes(rec *events.Recorder, at time.Time, answers []Answer, before Memory) {
	for i := range answers {
		a := &answers[i]
		if a.Told {
			recordAnswer(rec, at, a)
		}
		passed := a.Record.Result == model.ProbeSuccess && before[a.ContainerID][a.Type].Result != model.ProbeSuccess
		if passed && a.Type != model.Liveness {
			kind := map[model.ProbeType]string{model.Readiness: "Ready", model.Startup: "Started"}[a.Type]
			rec.Span(state.Span{Kind: kind, Object: a.Container, Begin: at, End: at})
		}
	}
}

func recordAnswer(rec *events.Recorder, at time.Time, a *Answer) {
	name := a.Type.Title()
	switch a.Result.Verdict {
	case Failure:
		rec.Warning(at, "Unhealthy", a.Container, fmt.Sprintf("%s probe failed: %s", name, a.Result.Output))
	case Unknown:
		rec.Warning(at, "Unhealthy", a.Container, fmt.Sprintf("%s probe errored and resulted in unknown state: %s", name, a.Result.Output))
	case Warning:
		rec.Warning(at, "ProbeWarning", a.Container, fmt.Sprintf("%s probe warning: %s", name, a.Result.Output))
	case Success:
	}
}
