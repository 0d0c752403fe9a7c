package inspect

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/events"
)

// timelineWidth is how wide the bars of a timeline are, in characters.
const timelineWidth = 48

// writeTimeline draws where the time of a start went, one bar a line.
func writeTimeline(w io.Writer, t *events.Timeline, colors terminal.Colors) error {
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintf(w, "Pod %s has no start that podctl remembers.\n", terminal.PrintableLine(t.Pod.String()))
		return err
	}
	total := t.End.Sub(t.Begin)
	fmt.Fprintf(w, "Start of pod %s at %s, %s\n\n", terminal.PrintableLine(t.Pod.String()), t.Begin.Local().Format(time.DateTime), seconds(total)) //nolint:errcheck // the last write tells
	width := 0
	for _, r := range t.Rows {
		width = max(width, utf8.RuneCountInString(rowLabel(r)))
	}
	for _, r := range t.Rows {
		label := rowLabel(r)
		bar := timelineBar(t, r)
		if r.Failed {
			bar = colors.Red(bar)
		}
		fmt.Fprintf(w, "  %s%s  %s  %s\n", label, strings.Repeat(" ", width-utf8.RuneCountInString(label)), bar, rowTime(t, r)) //nolint:errcheck // the last write tells
	}
	_, err := fmt.Fprintln(w)
	return err
}

func rowLabel(r events.TimelineRow) string {
	return strings.TrimSpace(r.Kind + " " + terminal.PrintableLine(r.Object))
}

// timelineBar is a row's bar; a moment is a mark.
func timelineBar(t *events.Timeline, r events.TimelineRow) string {
	from, to := position(t, r.Begin), position(t, r.End)
	bar := strings.Repeat("█", max(to-from, 1))
	if r.Begin.Equal(r.End) {
		bar, from = "◆", min(from, timelineWidth-1)
	}
	from = min(from, timelineWidth-1)
	return strings.Repeat("·", from) + bar + strings.Repeat(" ", max(timelineWidth-from-utf8.RuneCountInString(bar), 0))
}

func position(t *events.Timeline, at time.Time) int {
	total := t.End.Sub(t.Begin)
	if total <= 0 {
		return 0
	}
	return int(float64(at.Sub(t.Begin)) / float64(total) * timelineWidth)
}

// rowTime is how long a row took, or for a moment when it was.
func rowTime(t *events.Timeline, r events.TimelineRow) string {
	if r.Begin.Equal(r.End) {
		return "at " + seconds(r.Begin.Sub(t.Begin))
	}
	text := seconds(r.End.Sub(r.Begin))
	if r.Failed {
		text += ", failed"
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// The measures of the picture, in pixels.
const (
	svgLabels = 220
	svgBars   = 640
	svgTimes  = 120
	svgRow    = 22
	svgTop    = 40
)

// writeTimelineSVG draws the same as a picture.
func writeTimelineSVG(w io.Writer, t *events.Timeline) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		svgLabels+svgBars+svgTimes, svgTop+svgRow*len(t.Rows)+10)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="22" font-size="14">Start of pod %s, %s</text>`+"\n",
		view.XMLText(t.Pod.String()), seconds(t.End.Sub(t.Begin)))
	scale := svgBars / max(t.End.Sub(t.Begin).Seconds(), 0.001)
	for i, r := range t.Rows {
		y := svgTop + svgRow*i
		x := svgLabels + r.Begin.Sub(t.Begin).Seconds()*scale
		fmt.Fprintf(&b, `<text x="10" y="%d">%s</text>`, y+15, view.XMLText(rowLabel(r)))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`,
			x, y+3, max(r.End.Sub(r.Begin).Seconds()*scale, 2), svgRow-6, rowColor(r))
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#555">%s</text>`+"\n", svgLabels+svgBars+10, y+15, rowTime(t, r))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// rowColor tells the kinds of rows apart, and failures from all of them.
func rowColor(r events.TimelineRow) string {
	if r.Failed {
		return "#c0392b"
	}
	colors := map[string]string{"sandbox": "#8e44ad", "pull": "#2980b9", "run": "#f39c12", "ready": "#27ae60", "started": "#27ae60"}
	if c := colors[r.Kind]; c != "" {
		return c
	}
	return "#7f8c8d"
}
