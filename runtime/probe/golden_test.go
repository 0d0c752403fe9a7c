package probe

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
)

// workerRow records the actions of a kubelet's probe worker, tick by tick.
type workerRow struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	ProbeType model.ProbeType `json:"probeType"`
	Spec      struct {
		FailureThreshold    int32 `json:"failureThreshold"`
		SuccessThreshold    int32 `json:"successThreshold"`
		InitialDelaySeconds int32 `json:"initialDelaySeconds"`
	} `json:"spec"`
	Steps []workerStep `json:"steps"`
}

type workerStep struct {
	State       string `json:"state"`
	ContainerID string `json:"containerId"`
	AgeSeconds  int    `json:"ageSeconds"`
	Started     bool   `json:"started"`
	Raw         string `json:"raw"`
	Deleting    bool   `json:"deleting"`
	Phase       string `json:"phase"`
	Ran         bool   `json:"ran"`
	Published   string `json:"published"`
	OnHold      bool   `json:"onHold"`
}

// replayed probes as podctl does in invocations that are one period apart: only the record of the container's probe is
// kept between them.
type replayed struct {
	row     *workerRow
	probe   *v1.Probe
	spec    *v1.Container
	now     time.Time
	records map[string]model.ProbeRecord
}

func replay(r *workerRow) *replayed {
	p := &v1.Probe{
		FailureThreshold: r.Spec.FailureThreshold, SuccessThreshold: r.Spec.SuccessThreshold,
		InitialDelaySeconds: r.Spec.InitialDelaySeconds, PeriodSeconds: 1,
	}
	spec := &v1.Container{Name: "app", StartupProbe: &v1.Probe{FailureThreshold: 1, PeriodSeconds: 1}}
	switch r.ProbeType {
	case model.Liveness:
		spec.LivenessProbe = p
	case model.Readiness:
		spec.ReadinessProbe = p
	case model.Startup:
		spec.StartupProbe = p
	}
	return &replayed{row: r, probe: p, spec: spec, now: time.Unix(1_780_000_000, 0), records: map[string]model.ProbeRecord{}}
}

// tick runs the probe of a running container if podctl would, and folds the result that the kubelet's worker got.
func (r *replayed) tick(s *workerStep) (ran bool, record model.ProbeRecord) {
	r.now = r.now.Add(time.Second)
	record, known := r.records[s.ContainerID]
	if !known {
		record = model.InitialProbe(r.row.ProbeType)
	}
	c := &model.Container{ID: s.ContainerID, State: model.Running, StartedAt: r.now.Add(-time.Duration(s.AgeSeconds) * time.Second)}
	q := &round{now: r.now, opts: Options{Due: true}}
	q.observed.Memory.Probes = map[string]map[model.ProbeType]model.ProbeRecord{c.ID: {model.Startup: s.startup()}}
	if ran = q.skipReason(r.spec, c, r.row.ProbeType, r.probe, &record) == ""; ran {
		record = record.Fold(r.row.ProbeType, r.probe, verdictOf(s.Raw), r.now)
	}
	r.records[s.ContainerID] = record
	return ran, record
}

// startup returns the record of the container's startup probe.
func (s *workerStep) startup() model.ProbeRecord {
	if s.Started {
		return model.ProbeRecord{Result: model.ProbeSuccess}
	}
	return model.ProbeRecord{Result: model.ProbeUnknown}
}

// verdictOf converts a recorded result: a handler that returns an error counts as Unknown, and an unknown result as a
// failure.
func verdictOf(raw string) model.ProbeResult {
	switch raw {
	case "success", "warning":
		return model.ProbeSuccess
	case "error":
		return model.ProbeUnknown
	}
	return model.ProbeFailure
}

// comparable returns the ticks that are comparable with podctl: those at which a container runs that no earlier tick
// has found in another state. A worker's value for a container that does not run has no meaning here, because a record
// belongs to a container ID. The deletion and the end of the pod are not handled by the probe.
func (r *workerRow) comparable() []*workerStep {
	var steps []*workerStep
	dead := map[string]bool{}
	for i := range r.Steps {
		s := &r.Steps[i]
		switch {
		case s.Deleting || s.Phase != "":
			return steps
		case s.State != "running":
			dead[s.ContainerID] = true
		case !dead[s.ContainerID]:
			steps = append(steps, s)
		}
	}
	return steps
}

// carriedOver reports whether the worker of a row counted results of an earlier container towards the threshold of the
// next. podctl starts from zero with each container (docs/differences.md).
func carriedOver(id string) bool {
	return slices.Contains([]string{"pr-111", "pr-189"}, id)
}

// TestProbesFoldAsTheKubeletsWorkerDoes replays the recorded actions of probe workers.
func TestProbesFoldAsTheKubeletsWorkerDoes(t *testing.T) {
	rows, ticks := 0, 0
	podspectest.EachRow(t, "testdata/probes.train.jsonl.gz", func(line []byte) {
		var r workerRow
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Kind != "sequence" {
			return
		}
		rows++
		worker, differs := replay(&r), false
		for i, s := range r.comparable() {
			ticks++
			ran, record := worker.tick(s)
			if ran != s.Ran || string(record.Result) != s.Published || record.OnHold != s.OnHold {
				differs = true
				if !carriedOver(r.ID) {
					t.Errorf("%s tick %d (%+v): ran %v, %s, on hold %v", r.ID, i, s, ran, record.Result, record.OnHold)
				}
			}
		}
		if carriedOver(r.ID) && !differs {
			t.Errorf("%s agrees and is listed as differing", r.ID)
		}
	})
	if rows < 100 || ticks < 450 {
		t.Errorf("only %d rows and %d ticks were compared", rows, ticks)
	}
}
