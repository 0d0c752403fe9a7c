package view

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

func TestPlanView(t *testing.T) {
	until := time.Date(2026, 5, 4, 12, 4, 40, 0, time.Local)
	p := &plan.Plan{
		Pod:       model.PodRef{Namespace: "default", Name: "web"},
		Runtime:   plan.RuntimeRef{Name: "containerd", Version: "v2.4.2"},
		SandboxID: "7b2c1e0a99bbcccc",
		Steps: []plan.Step{
			{
				ID: "pull-app", Kind: plan.PullImage, Container: "app", Image: "registry.local/web:1.5",
				Message: "absent",
			},
			{ID: "check-app", Kind: plan.CheckContainer, Container: "app"},
			{
				ID:                 "stop",
				Kind:               plan.StopContainer,
				Container:          "app",
				ContainerID:        "9d0e4c77aaaabbbb",
				GracePeriodSeconds: new(int64(30)),
				PreStop:            "exec",
				Changes:            []diff.Change{{Path: "image", Before: "a:1.4", After: "a:1.5"}},
			},
			{
				ID: "start", Kind: plan.StartContainer, Container: "app", Attempt: 3, ContainerType: podspec.Regular,
				Changes: []diff.Change{{Path: "image", Before: "a:1.4", After: "a:1.5"}},
			},
			{
				ID: "update", Kind: plan.UpdateContainer, Container: "cache",
				Changes: []diff.Change{{Path: "limits.memory", Before: "64Mi", After: "128Mi"}},
			},
			{
				ID: "start-m", Kind: plan.StartContainer, Container: "metrics", Message: "not created yet",
				ContainerType: podspec.Regular,
			},
		},
		Holds: []plan.Hold{{
			Container: "worker", Reason: model.CrashLoopBackOff, Until: &until,
			Delay: &podstatus.Delay{Duration: 40 * time.Second, ExitCode: 1},
		}},
		Keeps: []plan.Keep{
			{IPs: []string{"10.88.0.7"}},
			{Container: "migrate", ContainerType: podspec.Init, Message: "done, exited 0 3m ago"},
		},
		Later:   []string{"something (when it is time)"},
		Summary: plan.Summary{Start: 1, Replace: 1, Update: 1, Hold: 1, Keep: 2},
	}
	want := `Pod default/web · containerd 2.4.2 · sandbox 7b2c1e0a99bb, 10.88.0.7

  = sandbox       ready
  = init migrate  done, exited 0 3m ago
-/+ app           replace              # image: a:1.4 -> a:1.5
      pull  registry.local/web:1.5  # absent
      stop  9d0e4c77aaaa  grace 30s, preStop exec
      start attempt 3
  ~ cache         update in place      # limits.memory: 64Mi -> 128Mi
  + metrics       start                # not created yet
  … worker        held until 12:04:40  # CrashLoopBackOff 40s, exit code 1

later: something (when it is time)

Plan: 1 to replace, 1 to start, 1 to update, 1 held, 2 unchanged.
`
	p.Only(func(*plan.Step) bool { return true })
	var b bytes.Buffer
	if err := (&Plan{Out: &b}).Write(p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
