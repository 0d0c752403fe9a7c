package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/plan"
)

// graph arranges the steps of a plan in levels. Each step is in a level after the steps that it waits for.
type graph struct {
	levels [][]*plan.Step
	at     map[string]place
}

// place is the level of a step and its row in the level.
type place struct{ level, row int }

// graphOf arranges the steps of a plan in levels. The edges of a plan have no cycles.
func graphOf(p *plan.Plan) *graph {
	g := &graph{at: map[string]place{}}
	steps := map[string]*plan.Step{}
	for i := range p.Steps {
		steps[p.Steps[i].ID] = &p.Steps[i]
	}
	var levelOf func(id string) int
	levelOf = func(id string) int {
		if at, known := g.at[id]; known {
			return at.level
		}
		level := 0
		for _, e := range steps[id].Needs {
			if steps[e.Step] != nil {
				level = max(level, levelOf(e.Step)+1)
			}
		}
		for len(g.levels) <= level {
			g.levels = append(g.levels, nil)
		}
		g.at[id] = place{level, len(g.levels[level])}
		g.levels[level] = append(g.levels[level], steps[id])
		return level
	}
	for i := range p.Steps {
		levelOf(p.Steps[i].ID)
	}
	return g
}

// edgeText describes which part of a step waits, unless the whole step waits.
func edgeText(e plan.Edge) string {
	var words []string
	switch e.Phase {
	case plan.Create:
		words = append(words, "to create")
	case plan.Stop:
		words = append(words, "to signal")
	case plan.Begin:
	}
	if e.Until == plan.Exited {
		words = append(words, "exit")
	}
	return strings.Join(words, ", ")
}

// stepText describes the action of a step and its object in one line.
func stepText(s *plan.Step) string {
	return terminal.PrintableLine(strings.TrimSpace(s.Kind.Verb() + " " + s.Object()))
}

// stepColor returns different colours for steps that create, remove, change and check, like the colours of a plan.
func stepColor(k plan.Kind) string {
	switch k { //nolint:exhaustive // the others create something
	case plan.StopContainer, plan.StopSandbox, plan.RemoveContainer, plan.RemoveSandbox,
		plan.RemoveVolume, plan.RemoveCgroup, plan.ArchiveLogs:
		return "#c0392b"
	case plan.UpdateContainer, plan.UpdatePod, plan.UpdateVolume, plan.RotateLog:
		return "#b7950b"
	case plan.CheckContainer, plan.PullImage:
		return "#2980b9"
	}
	return "#27ae60"
}

// WriteDOT writes the steps of plans and their dependencies in the language of Graphviz.
func WriteDOT(w io.Writer, plans []*plan.Plan) error {
	var b strings.Builder
	b.WriteString("digraph plan {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n")
	for i, p := range plans {
		known := graphOf(p).at
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n", i, dotText(graphTitle(p)))
		for j := range p.Steps {
			s := &p.Steps[j]
			fmt.Fprintf(&b, "    %s [label=%s, color=\"%s\"];\n",
				dotID(i, s.ID), dotText(stepText(s)), stepColor(s.Kind))
		}
		for j := range p.Steps {
			s := &p.Steps[j]
			for _, e := range s.Needs {
				if _, ok := known[e.Step]; !ok {
					continue
				}
				label := ""
				if text := edgeText(e); text != "" {
					label = " [style=dashed, label=" + dotText(text) + "]"
				}
				fmt.Fprintf(&b, "    %s -> %s%s;\n", dotID(i, e.Step), dotID(i, s.ID), label)
			}
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func dotID(pod int, step string) string { return dotText(fmt.Sprintf("%d/%s", pod, step)) }

// graphTitle returns the name of the pod, with a note if the plan has no steps.
func graphTitle(p *plan.Plan) string {
	if len(p.Steps) == 0 {
		return p.Pod.String() + ": no steps"
	}
	return p.Pod.String()
}

// dotText quotes a text for Graphviz.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(text) + `"`
}

// The dimensions of the picture of a plan, in pixels. boxLetters is a number of letters.
const (
	boxWidth   = 190
	boxHeight  = 28
	boxAcross  = 250
	boxDown    = 44
	graphSide  = 20
	graphTop   = 40
	boxLetters = 27
)

// WriteSVG draws the steps of plans and their dependencies. Time goes from left to right. A dashed line is a dependency
// of only a part of a step.
func WriteSVG(w io.Writer, plans []*plan.Plan) error {
	var body strings.Builder
	width, y := 400, 0
	for _, p := range plans {
		g := graphOf(p)
		fmt.Fprintf(&body, `<text x="%d" y="%d" font-size="14">Plan of pod %s</text>`+"\n",
			graphSide, y+24, xmlText(graphTitle(p)))
		g.draw(&body, y+graphTop)
		width = max(width, 2*graphSide+boxAcross*len(g.levels))
		y += graphTop + boxDown*g.rows() + graphSide
	}
	return writePicture(w, width, max(y, graphTop), body.String())
}

// rows returns the number of rows of the largest level, and at least 1.
func (g *graph) rows() int {
	rows := 1
	for _, level := range g.levels {
		rows = max(rows, len(level))
	}
	return rows
}

// draw draws the lines first, so that boxes cover them.
func (g *graph) draw(b *strings.Builder, top int) {
	for _, s := range slices.Concat(g.levels...) {
		for _, e := range s.Needs {
			if from, known := g.at[e.Step]; known {
				g.drawEdge(b, top, from, g.at[s.ID], edgeText(e))
			}
		}
	}
	for _, s := range slices.Concat(g.levels...) {
		x, y := g.corner(top, g.at[s.ID])
		text := []rune(stepText(s))
		if len(text) > boxLetters {
			text = append(text[:boxLetters-1], '…')
		}
		fmt.Fprintf(b, `<g><title>%s</title>`, xmlText(stepText(s)+": "+s.Message))
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="4"`, x, y, boxWidth, boxHeight)
		fmt.Fprintf(b, ` fill="white" stroke="%s" stroke-width="1.5"/>`, stepColor(s.Kind))
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text></g>`+"\n", x+8, y+18, xmlText(string(text)))
	}
}

func (g *graph) corner(top int, at place) (x, y int) {
	return graphSide + boxAcross*at.level, top + boxDown*at.row
}

func (g *graph) drawEdge(b *strings.Builder, top int, from, to place, text string) {
	x1, y1 := g.corner(top, from)
	x2, y2 := g.corner(top, to)
	x1, y1, y2 = x1+boxWidth, y1+boxHeight/2, y2+boxHeight/2
	dash := ""
	if text != "" {
		dash = ` stroke-dasharray="4 3"`
	}
	fmt.Fprintf(b, `<path d="M%d %d C%d %d %d %d %d %d" fill="none" stroke="#999"%s><title>%s</title></path>`+"\n",
		x1, y1, x1+30, y1, x2-30, y2, x2, y2, dash, xmlText(text))
	fmt.Fprintf(b, `<path d="M%d %d L%d %d L%d %d Z" fill="#999"/>`+"\n", x2-7, y2-4, x2, y2, x2-7, y2+4)
}

// writePicture writes a picture with a white background. The size is in pixels.
func writePicture(w io.Writer, width, height int, body string) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"`+
		` font-family="sans-serif" font-size="12">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n%s</svg>\n", width, height, body)
	return err
}

// xmlText escapes a text for XML. Characters that XML does not allow become spaces.
func xmlText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, text)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}
