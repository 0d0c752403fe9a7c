package commands

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// silent returns a lab with three pods. For one of them, a call of the runtime fails.
func silent(t *testing.T, method string) *lab {
	t.Helper()
	return withFault(t, runtimetest.Fault{Method: method, Err: status.Error(codes.Unknown, "its record is broken")})
}

// hanging returns a lab with three pods. For one of them, the runtime does not answer.
func hanging(t *testing.T) *lab {
	t.Helper()
	return withFault(t, runtimetest.Fault{Method: "PodSandboxStatus", Hangs: true})
}

// withFault returns a lab with three pods. Calls about one of them fail.
func withFault(t *testing.T, fault runtimetest.Fault) *lab {
	t.Helper()
	l := newLab(t)
	for _, name := range []string{"above", "broken", "below"} {
		l.Must("apply", l.Write(name,
			"  containers:\n  - name: a\n    image: 'i:1'\n    readinessProbe: {exec: {command: [ask]}}\n"))
	}
	l.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse { return &runtimeapi.ExecSyncResponse{} })
	checkpoints, err := state.Layout{Root: l.Path("state")}.Pods().Checkpoints()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range checkpoints {
		if j := entry.Checkpoint; j.Pod.Name == "broken" {
			ids := []string{j.LastRun.Sandbox, j.LastRun.Containers["a"], string(j.Pod.UID)}
			fault.Times, fault.Only = 1000, func(request any) bool { return isAbout(request, ids) }
			l.Fail(fault)
		}
	}
	return l
}

func isAbout(request any, ids []string) bool {
	text, err := json.Marshal(request)
	for _, id := range ids {
		if err == nil && strings.Contains(string(text), id) {
			return true
		}
	}
	return false
}

// TestOnePodHidesNoOther checks that the other pods are shown if one cannot be observed. The command reports that pod
// with the reason, and exits with an error.
func TestOnePodHidesNoOther(t *testing.T) {
	for method, commands := range map[string][][]string{
		"PodSandboxStatus": {
			{"get"},
			{"get", "-A"},
			{"get", "-A", "-o", "wide"},
			{"get", "-A", "--containers"},
			{"get", "-o", "json"},
			{"get", "-A", "-o", "yaml"},
			{"get", "-o", "name"},
			{"get", "--probe"},
			{"get", "above", "broken", "below"},
			{"plan"},
			{"plan", "-A"},
			{"plan", "-A", "-o", "json"},
			{"plan", "--probe"},
			{"plan", "--exit-code"},
			{"snapshot"},
			{"snapshot", "-A"},
			{"describe", "above", "broken", "below"},
			{"probe"},
			{"probe", "-A"},
			{"probe", "-o", "json"},
			{"apply", "--all"},
			{"delete", "--all", "--dry-run"},
		},
		"ContainerStatus": {
			{"get"},
			{"get", "-A"},
			{"plan", "-A"},
			{"snapshot", "-A"},
			{"describe", "above", "broken", "below"},
			{"probe", "-A"},
			{"apply", "--all"},
		},
		"ListContainerStats": {{"top", "--once"}, {"top", "-A", "--once"}, {"top", "-o", "json"}},
	} {
		l := silent(t, method)
		for _, args := range commands {
			code, stdout, stderr := l.Call(args...)
			if code != exit.Error || strings.Count(stderr, "its record is broken") != 1 ||
				!strings.Contains(stderr, "broken") {
				t.Errorf("%s, %v: exit code %d\n%s", method, args, code, stderr)
			}
			shown := stdout
			for _, name := range []string{"above", "below"} {
				if !strings.Contains(shown, name) {
					t.Errorf("%s, %v: %s is not shown\n%s%s", method, args, name, stdout, stderr)
				}
			}
			if !isDocument(args) && args[0] != "apply" && args[0] != "snapshot" && !strings.Contains(shown, "broken") {
				t.Errorf("%s, %v: the pod has no row\n%s", method, args, stdout)
			}
		}
		_, stdout, _ := l.Call("get", "broken", "-o", "jsonpath={.status.phase} {.status.reason}")
		if method != "ListContainerStats" && stdout != "Unknown StatusUnknown" {
			t.Errorf("%s: unexpected status %q", method, stdout)
		}
		l.Must("events")
	}
}

// isDocument reports whether a command line prints a document, which contains only observed pods.
func isDocument(args []string) bool { return slices.Contains(args, "json") && args[0] != "get" }

// TestUnresponsivePodDoesNotHideOthers checks that the other pods are shown if the runtime does not answer for one of
// them before the timeout. This is the timeout of the request or of the command.
func TestUnresponsivePodDoesNotHideOthers(t *testing.T) {
	l := hanging(t)
	for _, flag := range []string{"--request-timeout", "--timeout"} {
		for _, args := range [][]string{
			{"get", "-A"},
			{"get"},
			{"plan", "-A"},
			{"snapshot", "-A"},
			{"describe", "above", "broken", "below"},
			{"probe", "-A"},
			{"delete", "--all", "--dry-run"},
		} {
			l.InTime(flag, args, func(code int, text string) bool {
				return code == exit.Error && containsAll(text, "above", "below", "broken", strings.Trim(flag, "-"))
			})
		}
	}
	l.InTime("--request-timeout", []string{"get", "broken"}, func(code int, text string) bool {
		return code == exit.Error && containsAll(text, "StatusUnknown", "gave no answer")
	})
}

func containsAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// TestIncompletePlanIsNotSaved checks that an incomplete plan is not saved.
func TestIncompletePlanIsNotSaved(t *testing.T) {
	l := silent(t, "PodSandboxStatus")
	code, stdout, stderr := l.Call("plan", "--save", l.Path("plan.json"))
	if code != exit.Error || !strings.Contains(stderr, "the plan is not saved") || !strings.Contains(stdout, "above") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr = l.Call("apply", "--plan", l.Path("plan.json"), l.Path("above.yaml")); code == exit.OK {
		t.Errorf("it is executed:\n%s", stderr)
	}
}

// TestMissingRuntimeIsOneError checks that an error which affects all pods is printed once.
func TestMissingRuntimeIsOneError(t *testing.T) {
	l := silent(t, "PodSandboxStatus")
	l.Close()
	for _, args := range [][]string{
		{"get"}, {"plan"}, {"snapshot"}, {"probe"}, {"top", "--once"}, {"describe", "above", "below"},
	} {
		code, stdout, stderr := l.Call(args...)
		if code != exit.Error || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}
