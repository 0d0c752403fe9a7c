package commands

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/plan"
)

// goldenSync are the runtime calls of one whole pass of a kubelet.
type goldenSync struct {
	Calls []struct {
		Op             string   `json:"op"`
		ID             string   `json:"id"`
		Name           string   `json:"name"`
		Attempt        uint32   `json:"attempt"`
		SandboxID      string   `json:"sandboxId"`
		Image          string   `json:"image"`
		TimeoutSeconds int64    `json:"timeoutSeconds"`
		Command        []string `json:"command"`
		TargetID       string   `json:"targetId"`
	} `json:"calls"`
	Errors []string `json:"errors"`
}

// callSet returns the run, create, stop and pull calls, in no order.
func (s *goldenSync) callSet() []string {
	var calls []string
	for i := range s.Calls {
		switch c := &s.Calls[i]; c.Op {
		case "RunPodSandbox":
			calls = append(calls, fmt.Sprintf("run sandbox attempt %d", c.Attempt))
		case "CreateContainer":
			calls = append(calls, fmt.Sprintf("start %s attempt %d in %s", c.Name, c.Attempt, c.SandboxID))
		case "StopContainer":
			calls = append(calls, fmt.Sprintf("stop %s %ds", c.ID, c.TimeoutSeconds))
		case "StopPodSandbox":
			calls = append(calls, "stop sandbox "+c.ID)
		case "PullImage":
			calls = append(calls, "pull "+c.Image)
		case "ExecSync":
			calls = append(calls, "hook "+c.ID)
		}
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

// callsOf returns the runtime calls of a plan's steps.
func callsOf(p *plan.Plan) []string {
	var calls []string
	for i := range p.Steps {
		calls = append(calls, callsOfStep(p, &p.Steps[i])...)
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

func callsOfStep(p *plan.Plan, s *plan.Step) []string {
	var calls []string
	switch s.Kind {
	case plan.RunSandbox:
		calls = append(calls, fmt.Sprintf("run sandbox attempt %d", s.Attempt))
	case plan.StartContainer:
		sandbox := s.SandboxID
		if p.CreateSandbox {
			sandbox = fmt.Sprintf("new-sandbox-%d", p.Attempt)
		}
		calls = append(calls, fmt.Sprintf("start %s attempt %d in %s", s.Container, s.Attempt, sandbox))
		if s.PostStart == "exec" {
			calls = append(calls, fmt.Sprintf("hook new-%s-%d", s.Container, s.Attempt))
		}
	case plan.StopContainer:
		calls = append(calls, fmt.Sprintf("stop %s %ds", s.ContainerID, *s.GracePeriodSeconds))
		if s.PreStop == "exec" {
			calls = append(calls, "hook "+s.ContainerID)
		}
	case plan.StopSandbox:
		calls = append(calls, "stop sandbox "+s.SandboxID)
	case plan.PullImage:
		calls = append(calls, "pull "+withLatest(s.Image))
	case plan.CreateCgroup, plan.RemoveCgroup, plan.PrepareVolume, plan.UpdateVolume, plan.RemoveVolume, plan.CheckContainer,
		plan.RemoveSandbox, plan.RemoveContainer, plan.UpdateContainer, plan.UpdatePod, plan.ArchiveLogs, plan.RotateLog,
		plan.AllocateDevices:
	}
	return calls
}

// withoutFailed leaves out starts that failed in the kubelet before anything was created: debug containers without
// their target. podctl's plan has these steps, and their own check fails.
func (s *goldenSync) withoutFailed(calls []string) []string {
	return slices.DeleteFunc(calls, func(call string) bool {
		return slices.ContainsFunc(s.Errors, func(failed string) bool {
			name, why, _ := strings.Cut(strings.TrimPrefix(failed, "StartContainer "), ": ")
			return strings.HasPrefix(call, "start "+name+" ") &&
				strings.Contains(why, "unable to find target container")
		})
	})
}

func withLatest(image string) string {
	if strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") || strings.Contains(image, "@") {
		return image
	}
	return image + ":latest"
}

// TestPassesAgreeWithTheKubelet compares the runtime calls of whole passes.
func TestPassesAgreeWithTheKubelet(t *testing.T) {
	rules := differing(t, "testdata/sync.differ.txt")
	counts := map[string]int{}
	g := &goldenCall{dir: t.TempDir()}
	podspectest.EachRow(t, "testdata/sync.train.jsonl.gz", func(line []byte) {
		r := goldenRow{Backoffs: []object{}}
		var want goldenSync
		if json.Unmarshal(line, &r) != nil || json.Unmarshal(r.Expect, &want) != nil {
			t.Fatal("unreadable row")
		}
		if r.Group == "deleting" {
			return
		}
		code, out, errs := g.run(t, &r, "plan")
		var p plan.Plan
		if err := json.Unmarshal(out, &p); err != nil || code != 0 {
			t.Fatalf("%s: exit code %d: %s", r.ID, code, errs)
		}
		rule, listed := rules[r.ID]
		diff := gocmp.Diff(want.callSet(), want.withoutFailed(callsOf(&p)))
		if r.finished() {
			diff = r.diffTerminated(&p)
		}
		switch {
		case diff == "" && listed:
			t.Errorf("%s: agrees with the kubelet and is listed as differing (%s)", r.ID, rule)
		case diff != "" && !listed:
			t.Errorf("%s (%s %s): -kubelet +podctl\n%s%s\n%v", r.ID, r.Group, r.KubeletPhase, diff, want.Errors,
				p.Holds)
		case diff == "":
			rule = "agree"
		}
		counts[rule]++
	})
	t.Logf("rows: %v", counts)
}
