package view

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// TestChanges: a short change is shown on one line. A list shows only the differing entries, a long text only the part
// around the change, and a text of several lines only the differing lines.
func TestChanges(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct {
		change diff.Change
		want   []string
	}{
		"a value":         {diff.Change{Path: "image", Before: "a", After: "b"}, []string{"image: a -> b"}},
		"a new field":     {diff.Change{Path: "image", After: "b"}, []string{"image: + b"}},
		"a removed field": {diff.Change{Path: "image", Before: "a"}, []string{"image: - a"}},
		"a secret": {
			diff.Change{Path: "env[A].value", Sensitive: true}, []string{"env[A].value: (secret changed)"},
		},
		"an entry of a list": {
			diff.Change{Path: "command", Before: `["sh","-c","a > b"]`, After: `["sh","-c","a > c"]`},
			[]string{"command[2]: a > b -> a > c"},
		},
		"another list": {
			diff.Change{Path: "command", Before: `["a","b","c"]`, After: `["d","e","f"]`},
			[]string{`command: ["a","b","c"] -> ["d","e","f"]`},
		},
		"a longer list": {
			diff.Change{Path: "command", Before: `["a"]`, After: `["a","b"]`},
			[]string{`command: ["a"] -> ["a","b"]`},
		},
		"a list of numbers": {diff.Change{Path: "p", Before: `[1]`, After: `[2]`}, []string{"p: [1] -> [2]"}},
		"a long text": {
			diff.Change{Path: "p", Before: long + "a" + long, After: long + "b" + long},
			[]string{"p:", "  - …xxxxxxxxxxxxxxxxaxxxxxxxxxxxxxxxx…", "  + …xxxxxxxxxxxxxxxxbxxxxxxxxxxxxxxxx…"},
		},
		"a new long text": {diff.Change{Path: "p", After: long}, []string{"p: + " + strings.Repeat("x", 128) + "…"}},
		"lines": {
			diff.Change{Path: "p", Before: "one\ntwo\nthree\n", After: "one\n2\nthree\n"},
			[]string{"p:", "    one", "  - two", "  + 2", "    three"},
		},
		"lines far apart": {
			diff.Change{Path: "p", Before: "a\n1\n2\n3\n4\n5\nb", After: "A\n1\n2\n3\n4\n5\nB"},
			[]string{"p:", "  - a", "  + A", "    1", "    2", "  …", "    4", "    5", "  - b", "  + B"},
		},
		"a new line": {
			diff.Change{Path: "p", Before: "one\n", After: "one\ntwo\n"}, []string{"p:", "    one", "  + two"},
		},
		"a line's end": {
			diff.Change{Path: "p", Before: "one\ntwo", After: "one\ntwo\n"},
			[]string{"p:", "  (white space at the end)"},
		},
		"many lines": {
			diff.Change{Path: "p", After: strings.Repeat("l\n", 23)},
			slices.Concat([]string{"p:"}, slices.Repeat([]string{"  + l"}, 20), []string{"  … (3 more lines)"}),
		},
	} {
		var got []string
		for _, one := range changesOf([]diff.Change{c.change}) {
			got = append(got, one.text)
			for _, line := range one.lines {
				got = append(got, "  "+line.mark+line.text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestPlanShowsEachStep: each step except a check is in a row, in the order in which they run, and the totals count the
// rows.
func TestPlanShowsEachStep(t *testing.T) {
	grace := new(int64(30))
	for name, c := range map[string]struct {
		plan plan.Plan
		want string
	}{
		"a replacement": {plan.Plan{
			Steps: []plan.Step{
				{Kind: plan.CreateCgroup},
				{Kind: plan.PrepareVolume, Volume: "v"},
				{Kind: plan.PullImage, Container: "a", Image: "i:2", Message: "absent"},
				{Kind: plan.PullImage, Container: "a", Image: "data:1", Message: "absent"},
				{Kind: plan.PullImage, Container: "later", Image: "l:1", Message: "absent"},
				{Kind: plan.StopContainer, Container: "a", ContainerID: "a1", GracePeriodSeconds: grace, Message: "x"},
				{Kind: plan.StartContainer, Container: "a", Attempt: 1, Unchanged: 3, Changes: []diff.Change{
					{Path: "command", Before: `["sh","-c","one\ntwo"]`, After: `["sh","-c","one\n2"]`},
					{Path: "image", Before: "i:1", After: "i:2"},
				}},
				{Kind: plan.RemoveContainer, Container: "a", ContainerID: "a0"},
				{Kind: plan.RemoveSandbox, SandboxID: "old", Message: "an older sandbox without containers"},
				{Kind: plan.RotateLog, Container: "b", Message: "full"},
			},
			Keeps: []plan.Keep{{Message: "10.0.0.2"}, {Container: "b", Message: "running"}},
			Record: []plan.Edit{{
				Change:      diff.Change{Path: "metadata.labels.tier", Before: "a", After: "b"},
				TakesEffect: plan.EffectLive,
			}},
			Summary: plan.Summary{Replace: 1, Prepare: 3, Remove: 1, Rotate: 1, Keep: 2, Record: 1},
		}, `  + cgroup       create
  + volume v     prepare
  = sandbox      ready
  = b            running
-/+ a            replace   # 2 fields changed (3 unchanged)
      command[2]:
          one
        - two
        + 2
      image: i:1 -> i:2
      pull   i:2  # absent
      pull   data:1  # absent
      stop   a1  grace 30s
      start  attempt 1
      remove a0  attempt 0
  + later        pull      # absent
      pull l:1  # absent
  ~ log b        rotate    # full
  - sandbox old  remove    # an older sandbox without containers
  ~ metadata.labels.tier: a -> b  # no restart

Plan: 1 to replace, 3 to prepare, 1 to remove, 1 log to rotate, 1 field to record, 2 unchanged.
`},
		"a deletion": {plan.Plan{
			Steps: []plan.Step{
				{
					Kind: plan.StopContainer, Container: "a", ContainerID: "a1", GracePeriodSeconds: grace,
					Message: "the pod is deleted",
				},
				{Kind: plan.StopSandbox, SandboxID: "s"},
				{Kind: plan.RemoveContainer, Container: "a", ContainerID: "a1", Attempt: 1},
				{Kind: plan.RemoveContainer, Container: "a", ContainerID: "a0"},
				{Kind: plan.RemoveSandbox, SandboxID: "s"},
				{Kind: plan.RemoveVolume},
				{Kind: plan.RemoveCgroup},
				{Kind: plan.ArchiveLogs},
			},
			Summary: plan.Summary{Remove: 2, CleanUp: 3},
		}, `  - a         stop, remove  # the pod is deleted
      stop   a1  grace 30s
      remove a1  attempt 1
      remove a0  attempt 0
  - sandbox   stop, remove
  - volumes   remove
  - cgroup    remove
  - logs      archive

Plan: 2 to remove, 3 to clean up.
`},
		"devices": {plan.Plan{
			Steps: []plan.Step{{
				Kind: plan.AllocateDevices, Container: "a", Message: "a has no devices yet",
				Devices: []model.DeviceSet{{Resource: "example.com/gpu", IDs: []string{"0", "1"}}},
			}},
			Summary: plan.Summary{Prepare: 1},
		}, `  + devices of a  allocate  # example.com/gpu=0,1

Plan: 1 to prepare.
`},
		"the pod grows first": {plan.Plan{
			Steps: []plan.Step{{Kind: plan.UpdatePod}, {
				Kind: plan.UpdateContainer, Container: "a",
				Changes: []diff.Change{{Path: "cpu", Before: "1", After: "2"}},
			}},
			Summary: plan.Summary{Update: 2},
		}, `  ~ pod       update in place
  ~ a         update in place  # cpu: 1 -> 2

Plan: 2 to update.
`},
		"and shrinks last": {plan.Plan{
			Steps: []plan.Step{{
				Kind: plan.UpdateContainer, Container: "a",
				Changes: []diff.Change{{Path: "cpu", Before: "2", After: "1"}},
			}, {Kind: plan.UpdatePod}},
			Summary: plan.Summary{Update: 2},
		}, `  ~ a         update in place  # cpu: 2 -> 1
  ~ pod       update in place

Plan: 2 to update.
`},
		"another sandbox": {plan.Plan{
			Steps: []plan.Step{
				{Kind: plan.StopSandbox, SandboxID: "s"},
				{
					Kind: plan.RunSandbox, Attempt: 1, Message: "its settings changed",
					Changes: []diff.Change{{Path: "hostname", Before: "a", After: "b"}},
				},
				{Kind: plan.StartContainer, Container: "a", PostStart: "exec", Message: "not created yet"},
				{Kind: plan.RemoveSandbox, SandboxID: "s"},
			},
			Summary: plan.Summary{Replace: 1, Start: 1},
		}, `-/+ sandbox   replace   # its settings changed: hostname: a -> b
      stop   s
      create attempt 1
      remove s
  + a         start     # not created yet
      start attempt 0, postStart exec

Plan: 1 to replace, 1 to start.
`},
	} {
		c.plan.Only(func(*plan.Step) bool { return true })
		var b bytes.Buffer
		if err := (&Plan{Out: &b}).Write(&c.plan); err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(b.String(), "\n\n")
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestChangesAreColoured: removed text is red, added text is green.
func TestChangesAreColoured(t *testing.T) {
	var b strings.Builder
	v := &Plan{Out: &b, Colors: terminal.Colors{On: true}}
	v.writeDetail(&b, planDetail{text: "p:", lines: lineChanges("a\nb", "a\nc")})
	want := "      p:\n        \x1b[2m  a\x1b[22m\n        \x1b[31m- b\x1b[0m\n        \x1b[32m+ c\x1b[0m\n"
	if got := b.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNarrowPlans: a comment that does not fit beside its row is written below it, in lines that fit.
func TestNarrowPlans(t *testing.T) {
	p := &plan.Plan{Steps: []plan.Step{{
		Kind: plan.StopContainer, Container: "app", ContainerID: "a1", GracePeriodSeconds: new(int64(30)),
		Message: "liveness probe failed three times in a row: connection refused",
	}}, Summary: plan.Summary{Stop: 1}}
	p.Only(func(*plan.Step) bool { return true })
	var b strings.Builder
	if err := (&Plan{Out: &b, Width: 40}).Write(p); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "  - app       stop a1\n") &&
		!strings.Contains(b.String(), "  - app       stop\n") {
		t.Errorf("the row:\n%s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 41 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if !strings.Contains(b.String(),
		"      # liveness probe failed three\n      # times in a row: connection\n      # refused\n") {
		t.Errorf("the comment:\n%s", b.String())
	}
}

// TestLongTextsAreCompared: comparing long texts takes bounded time. Only the beginning of the difference is matched,
// and equal text far from it does not count.
func TestLongTextsAreCompared(t *testing.T) {
	var up, down []string
	for i := range 50_000 {
		up, down = append(up, strconv.Itoa(i)), append(down, strconv.Itoa(50_000-i))
	}
	reversed := lineChanges(strings.Join(up, "\n"), strings.Join(down, "\n"))
	if len(reversed) != maxLines+1 || reversed[maxLines].text != "… (more lines differ)" {
		t.Errorf("%d lines, at last %v", len(reversed), reversed[len(reversed)-1])
	}
	edited := slices.Clone(up)
	edited[25_000] = "here"
	want := []diffLine{
		{markSame, "24998"},
		{markSame, "24999"},
		{markBefore, "25000"},
		{markAfter, "here"},
		{markSame, "25001"},
		{markSame, "25002"},
	}
	if got := lineChanges(strings.Join(up, "\n"), strings.Join(edited, "\n")); !slices.Equal(got, want) {
		t.Errorf("one edited line: %v", got)
	}
	if got := lineChanges("a\n"+strings.Repeat("b\n", 300), "a"); got[0] != (diffLine{markSame, "a"}) ||
		len(got) != maxLines+1 {
		t.Errorf("removed lines: %v", got)
	}
}
