package view

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
)

var midnight = time.Date(2030, 1, 1, 0, 0, 0, 0, time.Local)

// started returns a start that takes two seconds: a sandbox for half of it, then a container, and a row without a
// duration at the end.
func started(name string, after time.Duration) *events.Timeline {
	at := func(d time.Duration) time.Time { return midnight.Add(after + d) }
	return &events.Timeline{Pod: model.PodRef{
		Namespace: "default", Name: name,
	}, Begin: at(0), End: at(2 * time.Second), Rows: []events.TimelineRow{
		{Kind: "sandbox", Begin: at(0), End: at(time.Second)},
		{Kind: "start", Object: "<a&\x1b>", Begin: at(time.Second), End: at(2 * time.Second), Failed: true},
		{Kind: "ready", Begin: at(2 * time.Second), End: at(2 * time.Second)},
	}}
}

func timelineText(t *testing.T, all ...*events.Timeline) string {
	t.Helper()
	var b strings.Builder
	if err := NewTimelines(all).WriteText(&b, terminal.Colors{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func bars(before, length int) string {
	return strings.Repeat("·", before) + strings.Repeat("█", length) + strings.Repeat(" ", timelineWidth-before-length)
}

// TestTimelineOfOne: the times of a single start count from its beginning.
func TestTimelineOfOne(t *testing.T) {
	const name = "start <a&\\x1b>"
	want := "Start of pod default/web at 2030-01-01 00:00:00, 2.000s\n\n" +
		"  sandbox         " + bars(0, 24) + "  1.000s\n" +
		"  " + name + "  " + bars(24, 24) + "  1.000s, failed\n" +
		"  ready           " + strings.Repeat("·", 47) + "◆  at 2.000s\n\n"
	if got := timelineText(t, started("web", 0)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	got := timelineText(t, &events.Timeline{Pod: model.PodRef{Namespace: "default", Name: "old"}})
	if got != "Pod default/old has no recorded start.\n" {
		t.Error(got)
	}
}

// TestTimelinesOnOneScale: starts that happened together share a clock, in any order. Others are aligned at their
// beginning.
func TestTimelinesOnOneScale(t *testing.T) {
	together := timelineText(t, started("second", 2*time.Second), started("first", 0))
	for _, want := range []string{
		"Start of 2 pods at 2030-01-01 00:00:00, 4.000s\n",
		"  default/second, 2.000s\n  sandbox         " + bars(24, 12) + "  1.000s",
		"ready           " + strings.Repeat("·", 47) + "◆  at 4.000s",
		"  default/first, 2.000s\n  sandbox         " + bars(0, 12),
	} {
		if !strings.Contains(together, want) {
			t.Errorf("no %q in\n%s", want, together)
		}
	}
	apart := timelineText(t, started("first", 0), started("later", time.Hour))
	for _, want := range []string{
		"Starts of 2 pods, each drawn from its own start time\n",
		"  default/later at 2030-01-01 01:00:00, 2.000s\n  sandbox         " + bars(0, 24),
	} {
		if !strings.Contains(apart, want) {
			t.Errorf("no %q in\n%s", want, apart)
		}
	}
}

// TestTimelinePicture: the picture is valid XML, with a row for each part of each start, and round times.
func TestTimelinePicture(t *testing.T) {
	var b strings.Builder
	err := NewTimelines([]*events.Timeline{started("a", 0), started("b", time.Second), {}}).WriteSVG(&b)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
	}
	if rows := strings.Count(b.String(), `rx="2"`); rows != 6 {
		t.Errorf("%d rows", rows)
	}
	for _, want := range []string{">500ms<", ">3s<", "default/b, 2.000s", "has no recorded start"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// TestScaleSteps: steps are round, and there are at most ten, even for extreme lengths.
func TestScaleSteps(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		0:                     time.Millisecond,
		11 * time.Millisecond: 2 * time.Millisecond,
		3 * time.Second:       500 * time.Millisecond,
		50 * time.Second:      5 * time.Second,
		math.MaxInt64:         1e18,
	} {
		if got := scaleStep(length); got != want {
			t.Errorf("%s: %s", length, got)
		}
	}
}
