package view

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

func graphPlan() *plan.Plan {
	return &plan.Plan{Pod: model.PodRef{Namespace: "default", Name: "web"}, Steps: []plan.Step{
		{ID: "run", Kind: plan.RunSandbox},
		{ID: "pull", Kind: plan.PullImage, Image: `evil"<i>\` + "\x1b"},
		{ID: "stop", Kind: plan.StopContainer, Container: "old", Needs: plan.After("pull")},
		{
			ID: "start", Kind: plan.StartContainer, Container: "app",
			Needs: append(plan.After("run", "pull"),
				plan.Edge{Step: "stop", Until: plan.Exited}, plan.Edge{Step: "gone", Phase: plan.Create}),
		},
	}}
}

// TestLevels: a step is in a level after all steps that it waits for.
func TestLevels(t *testing.T) {
	p := graphPlan()
	g := graphOf(p)
	for i := range p.Steps {
		for _, e := range p.Steps[i].Needs {
			if before, known := g.at[e.Step]; known && before.level >= g.at[p.Steps[i].ID].level {
				t.Errorf("%s is not after %s", p.Steps[i].ID, e.Step)
			}
		}
	}
	if len(g.levels) != 3 || g.rows() != 2 {
		t.Errorf("%d levels of %d rows", len(g.levels), g.rows())
	}
}

// TestPictures: pictures have a box for each step and a line for each edge, and escape texts from manifests.
func TestPictures(t *testing.T) {
	var dot, svg strings.Builder
	err := errors.Join(WriteDOT(&dot, []*plan.Plan{graphPlan()}), WriteSVG(&svg, []*plan.Plan{graphPlan(), {}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"0/run" -> "0/start";`, `"0/stop" -> "0/start" [style=dashed, label="exit"];`,
		`label="pull evil\"<i>\\\\x1b"`,
	} {
		if !strings.Contains(dot.String(), want) {
			t.Errorf("DOT lacks %s:\n%s", want, dot.String())
		}
	}
	if strings.Contains(dot.String(), "gone") {
		t.Errorf("DOT has a step that is not in the plan:\n%s", dot.String())
	}
	for d := xml.NewDecoder(strings.NewReader(svg.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, svg.String())
		}
	}
	if boxes, lines := strings.Count(svg.String(), "<g>"), strings.Count(svg.String(), `<path d="M`)/2; boxes != 4 ||
		lines != 4 || !strings.Contains(svg.String(), ": no steps") ||
		!strings.Contains(svg.String(), "evil&quot;&lt;i&gt;") {
		t.Errorf("%d boxes, %d lines:\n%s", boxes, lines, svg.String())
	}
}
