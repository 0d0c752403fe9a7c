package inspect

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// agentVerdicts is what an agent knows of probes.
type agentVerdicts map[agentProbe]api.Probe

// agentProbe names a probe of one run of a container.
type agentProbe struct {
	pod         types.UID
	containerID string
	probe       model.ProbeType
}

// agentVerdict is what an agent knows of one probe, in `probe -o json`.
type agentVerdict struct {
	Result model.ProbeResult `json:"result"`
	// Since is from when on the result is what it is, AskedAt when the probe was asked last.
	Since   time.Time `json:"since,omitzero"`
	AskedAt time.Time `json:"askedAt,omitzero"`
	Message string    `json:"message,omitempty"`
}

func verdictsOf(pods map[types.UID]*api.Pod) agentVerdicts {
	known := agentVerdicts{}
	for uid, p := range pods {
		for _, v := range p.Probes {
			known[agentProbe{uid, v.ContainerID, v.Type}] = v
		}
	}
	return known
}

// of is what the agent knows of the probe of a report; nil for one that it does not ask.
func (a agentVerdicts) of(r *probe.Report) *agentVerdict {
	v, ok := a[agentProbe{r.Pod.UID, r.ContainerID, r.Type}]
	if !ok {
		return nil
	}
	return &agentVerdict{Result: v.Result, Since: v.Since, AskedAt: v.AskedAt, Message: v.Message}
}

// text is the agent's verdict, and for how long it has been that.
func (a agentVerdicts) text(r *probe.Report, now time.Time) string {
	v := a.of(r)
	switch {
	case v == nil:
		return "-"
	case v.AskedAt.IsZero():
		return "not asked yet"
	case v.Since.IsZero():
		return string(v.Result)
	}
	return fmt.Sprintf("%s for %s", v.Result, duration.HumanDuration(max(now.Sub(v.Since), 0)))
}
