package commands

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// goldenBackoff is the history of a crashing container, with the hold of a kubelet that saw all of it.
type goldenBackoff struct {
	ID           string         `json:"id"`
	PodUID       string         `json:"podUID"`
	RestartCount int            `json:"restartCount"`
	Now          int64          `json:"now"`
	Exits        []recordedExit `json:"exits"`
	Expect       struct {
		Hold    bool   `json:"hold"`
		Until   int64  `json:"until"`
		Message string `json:"message"`
	} `json:"expect"`
}

type recordedExit struct {
	Attempt    int   `json:"attempt"`
	StartedAt  int64 `json:"startedAt"`
	FinishedAt int64 `json:"finishedAt"`
	ExitCode   int   `json:"exitCode"`
}

// decisionLead is the time from the recorded kubelet's decision to the start of the container.
const decisionLead = 50 * time.Millisecond

// fold replays the exits in the same way as podctl's checkpoint, start by start.
func (r *goldenBackoff) fold() model.Backoff {
	var b model.Backoff
	for i := 1; i < len(r.Exits); i++ {
		b = b.Advance(time.Unix(0, r.Exits[i-1].FinishedAt), time.Unix(0, r.Exits[i].StartedAt).Add(-decisionLead))
	}
	return b
}

func (r *goldenBackoff) pod() object {
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": "bo", "namespace": "default", "uid": r.PodUID},
		"spec":     object{"containers": []object{{"name": "app", "image": "registry.local/app:1"}}},
	}
}

// row converts the history into a snapshot with the newest records only, because a runtime keeps only those.
func (r *goldenBackoff) row(t *testing.T, records int) *goldenRow {
	t.Helper()
	pod, err := json.Marshal(r.pod())
	if err != nil {
		t.Fatal(err)
	}
	row := &goldenRow{ID: r.ID, Now: r.Now, Pod: pod}
	ip := "10.0.0.1"
	row.CRI.Sandboxes = []goldenSandbox{{ID: "s", State: "READY", Network: "POD", IP: &ip, CreatedAt: 1}}
	for _, e := range r.Exits[max(0, len(r.Exits)-records):] {
		row.CRI.Containers = append(row.CRI.Containers, goldenContainer{
			ID: fmt.Sprintf("c%d", e.Attempt), SandboxID: "s", Name: "app", Attempt: uint32(e.Attempt), State: "EXITED",
			CreatedAt:   e.StartedAt,
			StartedAt:   e.StartedAt,
			FinishedAt:  e.FinishedAt,
			ExitCode:    int32(e.ExitCode),
			Reason:      "Error",
			Annotations: map[string]string{"io.kubernetes.container.restartCount": fmt.Sprint(e.Attempt)},
		})
	}
	return row
}

func (g *goldenCall) hold(t *testing.T, row *goldenRow) *plan.Hold {
	t.Helper()
	code, out, errs := g.run(t, row, "plan")
	var p plan.Plan
	if err := json.Unmarshal(out, &p); err != nil || code != 0 {
		t.Fatalf("%s: exit code %d: %s", row.ID, code, errs)
	}
	if len(p.Holds) == 0 {
		return nil
	}
	return &p.Holds[0]
}

// TestBackoffAgreesWithTheKubelet checks that the hold is exactly that of the kubelet, to the nanosecond, if the
// checkpoint is available.
func TestBackoffAgreesWithTheKubelet(t *testing.T) {
	g := &goldenCall{dir: t.TempDir()}
	rows, held := 0, 0
	podspectest.EachRow(t, "testdata/backoff.train.jsonl.gz", func(line []byte) {
		var r goldenBackoff
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows++
		row := r.row(t, 5)
		row.Backoffs = []object{}
		if b := r.fold(); b.Duration > 0 {
			row.Backoffs = []object{{
				"container": "app", "duration": b.Duration.String(),
				"lastUpdate": b.LastUpdate.UTC().Format(time.RFC3339Nano),
			}}
		}
		hold := g.hold(t, row)
		if (hold != nil) != r.Expect.Hold {
			t.Errorf("%s: held %v, the kubelet %v", r.ID, hold, r.Expect.Hold)
			return
		}
		if hold == nil {
			return
		}
		held++
		if hold.Until.UnixNano() != r.Expect.Until || hold.Estimated {
			t.Errorf("%s: until %v, the kubelet %v", r.ID, hold.Until, time.Unix(0, r.Expect.Until))
		}
		if got := g.waitingMessage(t, row); got != r.Expect.Message {
			t.Errorf("%s: %q, the kubelet %q", r.ID, got, r.Expect.Message)
		}
	})
	if rows < 100 || held < 50 {
		t.Errorf("only %d rows, %d held", rows, held)
	}
}

func (g *goldenCall) waitingMessage(t *testing.T, row *goldenRow) string {
	t.Helper()
	_, out, _ := g.run(t, row, "get")
	var list struct{ Items []v1.Pod }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	waiting := list.Items[0].Status.ContainerStatuses[0].State.Waiting
	if waiting == nil || waiting.Reason != "CrashLoopBackOff" {
		return ""
	}
	return waiting.Message
}

// TestLostBackoffIsNeverLonger checks the hold without the checkpoint and with only some of the records. It is marked
// as an estimate, and never longer than the kubelet's.
func TestLostBackoffIsNeverLonger(t *testing.T) {
	g := &goldenCall{dir: t.TempDir()}
	estimated := 0
	podspectest.EachRow(t, "testdata/backoff.train.jsonl.gz", func(line []byte) {
		var r goldenBackoff
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		for records := 1; records <= 3; records++ {
			hold := g.hold(t, r.row(t, records))
			if hold == nil {
				continue
			}
			estimated++
			if !hold.Estimated || !r.Expect.Hold || hold.Until.UnixNano() > r.Expect.Until {
				t.Errorf("%s with %d records: held until %v (estimated: %v), the kubelet until %v",
					r.ID, records, hold.Until, hold.Estimated, time.Unix(0, r.Expect.Until))
			}
		}
	})
	if estimated < 50 {
		t.Errorf("only %d holds were estimated", estimated)
	}
}
