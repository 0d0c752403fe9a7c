package executor

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// TestReportsAreSequential checks that the caller gets one event at a time, each with its pod.
func TestReportsAreSequential(t *testing.T) {
	reported, inside := 0, 0
	r := &reporter{pod: model.PodRef{Name: "web"}, now: time.Now, notify: func(ev Event) {
		if inside++; inside > 1 || ev.Pod.Name != "web" {
			t.Errorf("%d concurrent events, pod %q", inside, ev.Pod.Name)
		}
		time.Sleep(time.Millisecond)
		reported++
		inside--
	}}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { r.warn("x"); r.progress(&plan.Step{}, "y") })
	}
	group.Wait()
	if reported != 8 {
		t.Errorf("%d events were reported", reported)
	}
}

// TestReportsContainNoSecrets checks that neither the caller nor the history gets the value of a Secret, and that a
// recorded warning is not reported.
func TestReportsContainNoSecrets(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	var reported []string
	r := &reporter{
		pod:      model.PodRef{UID: "u"},
		plan:     &plan.Plan{},
		now:      time.Now,
		redactor: redaction.New([]byte("correct horse")),
		notify:   func(ev Event) { reported = append(reported, ev.Detail) },
	}
	r.warn("the hook says: correct horse")
	r.progress(&plan.Step{Container: "a"}, "still correct horse")
	r.progress(nil, "of no step")
	r.record("FailedPreStopHook", "a", "it printed correct horse")
	r.write(layout.Pod("u"))
	h, err := layout.Pod("u").History().Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(reported) != 2 || len(h.Events) != 1 || h.Events[0].Reason != "FailedPreStopHook" {
		t.Errorf("reported %q, recorded %+v", reported, h.Events)
	}
	if text := strings.Join(append(reported, eventTexts(h.Events)...), "\n"); strings.Contains(text, "correct horse") {
		t.Errorf("the events contain a Secret:\n%s", text)
	}
}

// TestUnwritableEvents checks that the failure is reported and does not fail the pass.
func TestUnwritableEvents(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	// A file replaces the directory of histories.
	if err := os.WriteFile(strings.TrimSuffix(layout.Pod("u").History().Path(), "/u.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var reported []string
	r := &reporter{
		pod:    model.PodRef{UID: "u"},
		plan:   &plan.Plan{Holds: []plan.Hold{{Reason: model.NetworkNotReady}}},
		now:    time.Now,
		notify: func(ev Event) { reported = append(reported, string(ev.Kind)+" "+ev.Detail) },
	}
	r.write(layout.Pod("u"))
	if len(reported) != 1 || !strings.HasPrefix(reported[0], "Warning ") || !strings.Contains(reported[0], "the pod's events") {
		t.Errorf("reported %q", reported)
	}
}

// TestOutcomeJoinsItsFailures checks that the error of the pass contains each failure, and is nil without one.
func TestOutcomeJoinsItsFailures(t *testing.T) {
	if err := (&Outcome{Skipped: []*plan.Step{{ID: "a"}}}).Err(); err != nil {
		t.Errorf("Err of an outcome with a skipped step: %v", err)
	}
	first, second := errors.New("first"), errors.New("second")
	err := (&Outcome{Failed: []StepError{{Step: &plan.Step{}, Err: first}, {Step: &plan.Step{}, Err: second}}}).Err()
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Errorf("failures %v", err)
	}
}
