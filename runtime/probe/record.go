package probe

import (
	"fmt"
	"time"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// recordProbes records the events of probes that did not succeed, with the kubelet's texts. It also marks the successes
// with which a container counts as started or ready.
func recordProbes(rec *events.Recorder, at time.Time, reports []Report, before Memory) {
	for i := range reports {
		r := &reports[i]
		if !r.NeedsWrite() {
			continue
		}
		if r.IsEvent {
			recordAnswer(rec, at, r)
		}
		passed := r.Record.Result == model.ProbeSuccess && before[r.ContainerID][r.Type].Result != model.ProbeSuccess
		if passed && r.Type != model.Liveness {
			kind := map[model.ProbeType]string{model.Readiness: "Ready", model.Startup: "Started"}[r.Type]
			rec.Span(state.Span{Kind: kind, Object: r.Container, Begin: at, End: at})
		}
	}
}

func recordAnswer(rec *events.Recorder, at time.Time, r *Report) {
	name := r.Type.Title()
	switch r.Result.Verdict {
	case Failure:
		rec.Warning(at, "Unhealthy", r.Container, fmt.Sprintf("%s probe failed: %s", name, r.Result.Output))
	case Unknown:
		rec.Warning(at, "Unhealthy", r.Container, fmt.Sprintf("%s probe errored and resulted in unknown state: %s",
			name, r.Result.Output))
	case Warning:
		rec.Warning(at, "ProbeWarning", r.Container, fmt.Sprintf("%s probe warning: %s", name, r.Result.Output))
	case Success:
	}
}
