package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/events"
)

// Timelines draws the starts of pods on one scale. Starts that happened together share a clock. Other starts are
// aligned at their beginning, so that they can be compared.
type Timelines struct {
	starts []*events.Timeline
	// unknown are pods without a recorded start.
	unknown []*events.Timeline
	// together is set if the starts share a clock, which begins at begin. length is the length of the scale.
	together bool
	begin    time.Time
	length   time.Duration
}

// NewTimelines puts starts on one scale. It keeps their order.
func NewTimelines(all []*events.Timeline) *Timelines {
	v := &Timelines{}
	for _, t := range all {
		if len(t.Rows) == 0 {
			v.unknown = append(v.unknown, t)
		} else {
			v.starts = append(v.starts, t)
		}
	}
	if len(v.starts) == 0 {
		return v
	}
	v.setScale()
	return v
}

// setScale sets the scale. The starts happened together if no gap between them is longer than the longest start.
func (v *Timelines) setScale() {
	sorted := slices.SortedFunc(slices.Values(v.starts), func(a, b *events.Timeline) int {
		return a.Begin.Compare(b.Begin)
	})
	end := sorted[0].End
	for _, t := range sorted {
		v.length = max(v.length, t.End.Sub(t.Begin))
	}
	v.together, v.begin = true, sorted[0].Begin
	for _, t := range sorted {
		v.together = v.together && t.Begin.Sub(end) <= v.length
		if t.End.After(end) {
			end = t.End
		}
	}
	if v.together {
		v.length = end.Sub(v.begin)
	}
}

// origin returns the time at the left edge of a start.
func (v *Timelines) origin(t *events.Timeline) time.Time {
	if v.together {
		return v.begin
	}
	return t.Begin
}

// title describes the drawing.
func (v *Timelines) title() string {
	switch {
	case len(v.starts) == 1:
		return fmt.Sprintf("Start of pod %s", v.starts[0].Pod)
	case v.together:
		return fmt.Sprintf("Start of %d pods", len(v.starts))
	}
	return fmt.Sprintf("Starts of %d pods, each drawn from its own start time", len(v.starts))
}

// podTitle returns the heading of one of several starts.
func (v *Timelines) podTitle(t *events.Timeline) string {
	if v.together {
		return fmt.Sprintf("%s, %s", t.Pod, seconds(t.End.Sub(t.Begin)))
	}
	return fmt.Sprintf("%s at %s, %s", t.Pod, t.Begin.Local().Format(time.DateTime), seconds(t.End.Sub(t.Begin)))
}

// timelineWidth is the width of a bar, in characters.
const timelineWidth = 48

// WriteText draws the parts of the starts with their durations, one bar a line.
func (v *Timelines) WriteText(w io.Writer, colors terminal.Colors) error {
	var b strings.Builder
	for _, t := range v.unknown {
		fmt.Fprintf(&b, "Pod %s has no recorded start.\n", terminal.PrintableLine(t.Pod.String()))
	}
	if len(v.starts) > 0 {
		b.WriteString(terminal.PrintableLine(v.title()))
		if len(v.starts) == 1 || v.together {
			fmt.Fprintf(&b, " at %s, %s", v.begin.Local().Format(time.DateTime), seconds(v.length))
		}
		b.WriteString("\n\n")
	}
	width := v.labelWidth()
	for _, t := range v.starts {
		if len(v.starts) > 1 {
			fmt.Fprintf(&b, "  %s\n", colors.Bold(terminal.PrintableLine(v.podTitle(t))))
		}
		for _, r := range t.Rows {
			label := rowLabel(r)
			bar := v.bar(t, r)
			if r.Failed {
				bar = colors.Red(bar)
			}
			padding := strings.Repeat(" ", width-utf8.RuneCountInString(label))
			fmt.Fprintf(&b, "  %s%s  %s  %s\n", label, padding, bar, v.rowTime(t, r))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// labelWidth returns the width of the longest label of all starts, so that all bars are aligned.
func (v *Timelines) labelWidth() int {
	width := 0
	for _, t := range v.starts {
		for _, r := range t.Rows {
			width = max(width, utf8.RuneCountInString(rowLabel(r)))
		}
	}
	return width
}

func rowLabel(r events.TimelineRow) string {
	return strings.TrimSpace(r.Kind + " " + terminal.PrintableLine(r.Object))
}

// bar draws the bar of a row. A row without a duration gets a mark.
func (v *Timelines) bar(t *events.Timeline, r events.TimelineRow) string {
	from, to := v.position(t, r.Begin), v.position(t, r.End)
	bar := strings.Repeat("█", max(to-from, 1))
	if r.Begin.Equal(r.End) {
		bar = "◆"
	}
	from = min(from, timelineWidth-1)
	padding := max(timelineWidth-from-utf8.RuneCountInString(bar), 0)
	return strings.Repeat("·", from) + bar + strings.Repeat(" ", padding)
}

func (v *Timelines) position(t *events.Timeline, at time.Time) int {
	if v.length <= 0 {
		return 0
	}
	return int(float64(at.Sub(v.origin(t))) / float64(v.length) * timelineWidth)
}

// rowTime returns the duration of a row, or the time of a row without a duration.
func (v *Timelines) rowTime(t *events.Timeline, r events.TimelineRow) string {
	if r.Begin.Equal(r.End) {
		return "at " + seconds(r.Begin.Sub(v.origin(t)))
	}
	text := seconds(r.End.Sub(r.Begin))
	if r.Failed {
		text += ", failed"
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// The dimensions of the picture of starts, in pixels.
const (
	timelineLabels = 220
	timelineBars   = 640
	timelineTimes  = 120
	timelineRow    = 22
	timelineTop    = 58
)

// WriteSVG draws the starts as a picture.
func (v *Timelines) WriteSVG(w io.Writer) error {
	var body strings.Builder
	y := timelineTop
	for _, t := range v.starts {
		if len(v.starts) > 1 {
			fmt.Fprintf(&body, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+15, xmlText(v.podTitle(t)))
			y += timelineRow
		}
		for _, r := range t.Rows {
			v.drawRow(&body, y, t, r)
			y += timelineRow
		}
	}
	for _, t := range v.unknown {
		fmt.Fprintf(&body, `<text x="10" y="%d" fill="#555">Pod %s has no recorded start.</text>`+"\n",
			y+15, xmlText(t.Pod.String()))
		y += timelineRow
	}
	var scale strings.Builder
	if len(v.starts) > 0 {
		fmt.Fprintf(&scale, `<text x="10" y="22" font-size="14">%s, %s</text>`+"\n",
			xmlText(v.title()), seconds(v.length))
		v.drawScale(&scale, y)
	}
	return writePicture(w, timelineLabels+timelineBars+timelineTimes, y+10, scale.String()+body.String())
}

// drawRow draws one bar, with the label before it and the duration after all bars.
func (v *Timelines) drawRow(b *strings.Builder, y int, t *events.Timeline, r events.TimelineRow) {
	perSecond := v.pixelsPerSecond()
	x := timelineLabels + r.Begin.Sub(v.origin(t)).Seconds()*perSecond
	fmt.Fprintf(b, `<text x="10" y="%d">%s</text>`, y+15, xmlText(rowLabel(r)))
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`,
		x, y+3, max(r.End.Sub(r.Begin).Seconds()*perSecond, 2), timelineRow-6, rowColor(r))
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#555">%s</text>`+"\n",
		timelineLabels+timelineBars+10, y+15, v.rowTime(t, r))
}

// drawScale draws lines at round times.
func (v *Timelines) drawScale(b *strings.Builder, bottom int) {
	step := scaleStep(v.length)
	for at := time.Duration(0); at <= v.length; at += step {
		x := timelineLabels + at.Seconds()*v.pixelsPerSecond()
		fmt.Fprintf(b, `<path d="M%.1f %d V%d" stroke="#ddd"/>`, x, timelineTop-4, bottom)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="#777" font-size="10">%s</text>`+"\n", x, timelineTop-8, at)
	}
}

func (v *Timelines) pixelsPerSecond() float64 {
	return timelineBars / max(v.length.Seconds(), 0.001)
}

// scaleStep returns the shortest round time that divides the scale into at most ten steps.
func scaleStep(length time.Duration) time.Duration {
	for step := time.Millisecond; ; step *= 10 {
		for _, factor := range []time.Duration{1, 2, 5} {
			if length/10 <= factor*step {
				return factor * step
			}
		}
	}
}

// rowColor returns the colour for a kind of row, or red for a failure.
func rowColor(r events.TimelineRow) string {
	if r.Failed {
		return "#c0392b"
	}
	colors := map[string]string{
		"sandbox": "#8e44ad",
		"pull":    "#2980b9",
		"run":     "#f39c12",
		"ready":   "#27ae60",
		"started": "#27ae60",
	}
	if c := colors[r.Kind]; c != "" {
		return c
	}
	return "#7f8c8d"
}
