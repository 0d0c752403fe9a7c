package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// TestNeedsAreListedOnce also checks the order, and that empty IDs are left out.
func TestNeedsAreListedOnce(t *testing.T) {
	want := Needs{{Step: "a"}, {Step: "b"}, {Step: "c"}}
	if diff := cmp.Diff(want, after([]string{"a", "", "b"}, nil, []string{"a", "c"})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if After() != nil || After("") != nil {
		t.Error("After of no steps returns needs")
	}
}

// TestNeedsOfPhases checks that the phases of a step have separate needs, and that two phases may need the same step.
func TestNeedsOfPhases(t *testing.T) {
	needs := After("check", "pull").
		with(Edge{Until: Exited}, []string{"stop", "check"}).
		with(Edge{Phase: Create}, []string{"check", "check"}).
		with(Edge{Phase: Stop}, []string{"other"})
	for phase, want := range map[Phase]Needs{
		Begin:  {{Step: "check"}, {Step: "pull"}, {Step: "stop", Until: Exited}},
		Create: {{Step: "check", Phase: Create}},
		Stop:   {{Step: "other", Phase: Stop}},
	} {
		if diff := cmp.Diff(want, needs.Of(phase)); diff != "" {
			t.Errorf("part %d: (-want +got)\n%s", phase, diff)
		}
	}
	for step, want := range map[string]bool{"stop": true, "check": false, "other": false, "none": false} {
		if got := needs.AwaitsExit(step); got != want {
			t.Errorf("%s: %t", step, got)
		}
	}
}

// TestStepsAreWrittenAsLists checks that documents have four lists among the other fields, in a fixed order.
func TestStepsAreWrittenAsLists(t *testing.T) {
	grace := int64(30)
	whole := Step{
		ID:                 "start-app",
		Kind:               StartContainer,
		OnFailure:          Continue,
		Container:          "app",
		ContainerType:      podspec.Regular,
		ContainerID:        "c",
		SandboxID:          "s",
		Attempt:            2,
		Image:              "i:1",
		Volume:             "v",
		GracePeriodSeconds: &grace,
		PreStop:            "exec",
		PostStart:          "sleep",
		Logs:               RemoveOwnLogs,
		RestartsAll:        true,
		Needs: After("check-app").
			with(Edge{Until: Exited}, []string{"stop-app"}).
			with(Edge{}, []string{"remove-app"}).
			with(Edge{Phase: Create}, []string{"check-app"}).
			with(Edge{Phase: Stop}, []string{"stop-b"}),
		Reason: "SpecChanged", Message: "changed", Changes: []diff.Change{{Path: "image", Before: "a", After: "b"}}, Unchanged: 4,
	}
	for name, c := range map[string]struct {
		step Step
		want string
	}{
		"all of it": {whole, `{"id":"start-app","kind":"StartContainer",` +
			`"after":["check-app","stop-app","remove-app"],"onFailure":"continue",` +
			`"container":"app","containerType":"container","containerID":"c","sandboxID":"s","attempt":2,` +
			`"image":"i:1","volume":"v","gracePeriodSeconds":30,` +
			`"stopAfter":["stop-b"],"createAfter":["check-app"],"afterExit":["stop-app"],"preStop":"exec","postStart":"sleep",` +
			`"reason":"SpecChanged","message":"changed","changes":[{"path":"image","before":"a","after":"b"}],"unchanged":4}`},
		"hardly anything": {Step{ID: "a", Kind: CreateCgroup}, `{"id":"a","kind":"CreateCgroup","onFailure":"","reason":"","message":""}`},
	} {
		for _, value := range []any{c.step, &c.step} {
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Replace(string(text), `"containerType":"`+string(podspec.Regular)+`"`, `"containerType":"container"`, 1)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", name, diff)
			}
		}
	}
}

// TestStepOrderIsNotReadFromFiles checks that the order of steps is never read from a file.
func TestStepOrderIsNotReadFromFiles(t *testing.T) {
	var got Step
	text := `{"id":"a","kind":"StopContainer","after":["b"],"afterExit":["b"],"container":"app",` +
		`"gracePeriodSeconds":3,"reason":"Deleted","unchanged":1}`
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	grace := int64(3)
	want := Step{ID: "a", Kind: StopContainer, Container: "app", GracePeriodSeconds: &grace, Reason: "Deleted", Unchanged: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestStepsAreFound checks the queries by kind, container and record.
func TestStepsAreFound(t *testing.T) {
	var l steps
	for _, s := range []Step{
		{ID: "stop-1", Kind: StopContainer, Container: "a", ContainerID: "1"},
		{ID: "stop-2", Kind: StopContainer, Container: "b", ContainerID: "2"},
		{ID: "remove-1", Kind: RemoveContainer, Container: "a", ContainerID: "1"},
		{ID: "pull", Kind: PullImage, Container: "a"},
	} {
		if l.add(s) != s.ID {
			t.Error("add returns another ID")
		}
	}
	for name, c := range map[string]struct{ got, want []string }{
		"a kind":          {l.of(StopContainer), []string{"stop-1", "stop-2"}},
		"a kind and name": {l.named(StopContainer, "b"), []string{"stop-2"}},
		"a record":        {l.record("1"), []string{"stop-1", "remove-1"}},
		"none":            {l.of(RunSandbox), nil},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	if !l.does(RemoveContainer, "1") || l.does(RemoveContainer, "2") {
		t.Error("does matches the removal of another record")
	}
}

// TestStepTexts checks the verb, the object and the details in plans and progress lines.
func TestStepTexts(t *testing.T) {
	grace := int64(30)
	id := "0123456789abcdef"
	for want, s := range map[string]Step{
		"create cgroup|":                   {Kind: CreateCgroup},
		"remove cgroup|":                   {Kind: RemoveCgroup},
		"prepare volume v|":                {Kind: PrepareVolume, Volume: "v"},
		"update volume v|":                 {Kind: UpdateVolume, Volume: "v"},
		"remove volumes|":                  {Kind: RemoveVolume},
		"pull i:1|":                        {Kind: PullImage, Image: "i:1", Container: "app"},
		"check app|":                       {Kind: CheckContainer, Container: "app"},
		"create sandbox|attempt 2":         {Kind: RunSandbox, Attempt: 2},
		"stop sandbox|0123456789ab":        {Kind: StopSandbox, SandboxID: id},
		"remove sandbox|0123456789ab":      {Kind: RemoveSandbox, SandboxID: id},
		"start app|attempt 1":              {Kind: StartContainer, Container: "app", Attempt: 1},
		"update app|":                      {Kind: UpdateContainer, Container: "app"},
		"update pod|":                      {Kind: UpdatePod},
		"archive logs|":                    {Kind: ArchiveLogs},
		"rotate log app|":                  {Kind: RotateLog, Container: "app"},
		"other |":                          {Kind: "Other"},
		"stop app|0123456789ab  grace 30s": {Kind: StopContainer, Container: "app", ContainerID: id, GracePeriodSeconds: &grace},
		"stop app|0123456789ab  grace 30s, preStop exec": {
			Kind:               StopContainer,
			Container:          "app",
			ContainerID:        id,
			GracePeriodSeconds: &grace,
			PreStop:            "exec",
		},
		"start app|attempt 1, postStart sleep": {Kind: StartContainer, Container: "app", Attempt: 1, PostStart: "sleep"},
		"remove app|0123456789ab  attempt 3":   {Kind: RemoveContainer, Container: "app", ContainerID: id, Attempt: 3},
	} {
		if got := s.Kind.Verb() + " " + s.Object() + "|" + s.Detail(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
