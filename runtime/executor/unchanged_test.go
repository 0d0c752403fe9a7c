package executor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// remembered returns the memory and images of the snapshot and of the plan's input, as text.
func (p *planned) remembered() string {
	p.t.Helper()
	text, err := json.MarshalIndent([]any{p.snapshot.Checkpoint, p.in.Observed.Memory, p.in.Observed.Images}, "", " ")
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// runUnchanged runs a plan that has steps, and checks that its snapshot and its input do not change.
func (p *planned) runUnchanged(name string) {
	p.t.Helper()
	before := p.remembered()
	if _, err := p.run(Options{}); err != nil {
		p.t.Fatal(err)
	}
	if diff := cmp.Diff(before, p.remembered()); diff != "" || len(p.plan.Steps) == 0 {
		p.t.Errorf("%s: a pass with %d steps changed its snapshot:\n%s", name, len(p.plan.Steps), diff)
	}
}

// TestPassKeepsItsSnapshot checks that a pass writes its results into its own checkpoint. The snapshot and the input
// of its plan do not change.
func TestPassKeepsItsSnapshot(t *testing.T) {
	for name, c := range map[string]struct{ text, fail string }{
		"a restart":          {onePod(), ""},
		"a pull":             {strings.Replace(onePod(), "i:1", "i:3", 1), ""},
		"a resize":           {strings.Replace(onePod(), "image: 'i:1'", "image: 'i:1', resources: {limits: {cpu: 100m}}", 1), ""},
		"a start that fails": {strings.Replace(onePod(), "i:1", "i:2", 1), "StartContainer"},
		"another source":     {onePod(), ""},
		"a deletion":         {"", ""},
	} {
		l := newLab(t, "i:1", "i:2")
		first := l.plan(model.PodRef{}, onePod())
		first.runUnchanged("a first start")
		if c.fail != "" {
			l.server.Fail(runtimetest.Fault{Method: c.fail, Times: 1, Err: errors.New("injected failure")})
		}
		if name != "a resize" {
			l.server.Exit("a", 1)
		}
		l.clock.Advance(time.Minute)
		p := l.plan(first.in.Pod, c.text)
		if name == "another source" {
			p.in.Desired.Source, p.in.Desired.Owner = "/elsewhere.yaml", "agent"
		}
		p.runUnchanged(name)
	}
}
