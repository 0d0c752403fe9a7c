package lifecycle_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
)

// keptPod is a pod that an agent keeps. It has no source if it was applied by hand.
func (l *lab) keptPod(name, source string) api.Pod {
	out, _ := l.Must("get", name, "-o", "jsonpath={.metadata.uid}")
	return api.Pod{
		PodRef: model.PodRef{Namespace: "default", Name: name, UID: types.UID(out)}, Source: source,
		File: source + "/file.yaml",
	}
}

// TestRecreatedPodsAreNoted checks that delete names the file from which the agent recreates a pod.
func TestRecreatedPodsAreNoted(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("kept", quickly), l.Write("hand", quickly), l.Write("other", quickly))
	if _, stderr := l.Must("delete", "other"); strings.Contains(stderr, "note:") {
		t.Errorf("without an agent:\n%s", stderr)
	}
	l.ServeAgent(l.keptPod("kept", "/pods"), l.keptPod("hand", ""))
	const want = "note: the agent recreates pod default/kept: its manifest is in /pods/file.yaml; remove it there to delete the pod\n"
	if _, stderr := l.Must("delete", "kept", "hand"); strings.Count(stderr, "note:") != 1 ||
		!strings.Contains(stderr, want) {
		t.Errorf("want one note\n%sgot\n%s", want, stderr)
	}
}

// TestRevertedManifestsAreNoted checks that apply names the file of the agent's source if it has another version
// of the pod. There is no note for the same file, a pod that was applied by hand, or podctl's own copy.
func TestRevertedManifestsAreNoted(t *testing.T) {
	l := newLab(t)
	path := l.Write("kept", quickly)
	l.Must("apply", path, l.Write("hand", quickly))
	kept := l.keptPod("kept", "/pods")
	same := l.keptPod("hand", "/pods")
	same.File = l.Path("link.yaml")
	if err := os.Symlink(l.Path("hand.yaml"), same.File); err != nil {
		t.Fatal(err)
	}
	l.ServeAgent(kept, same)
	const want = "the agent applies this pod from /pods/file.yaml and reverts other changes; edit that file\n"
	for _, args := range [][]string{
		{"apply", path}, {"plan", path}, {"apply", "--dry-run", path, l.Path("hand.yaml")},
	} {
		if _, stderr := l.Must(args...); strings.Count(stderr, "the agent") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: want one note\n%sgot\n%s", args, want, stderr)
		}
	}
	for _, args := range [][]string{{"apply", "--all"}, {"plan"}, {"apply", l.Path("hand.yaml")}} {
		if _, stderr := l.Must(args...); strings.Contains(stderr, "the agent") {
			t.Errorf("%v:\n%s", args, stderr)
		}
	}
}

// TestWaitBesideAnAgent checks that apply --wait leaves the pods of a workload to the agent that keeps it, and prints
// its progress. If the agent does not keep the workload, the command makes the passes.
func TestWaitBesideAnAgent(t *testing.T) {
	for name, kept := range map[string][]api.Workload{
		"kept": {{Namespace: "default", Kind: "Deployment", Name: "web"}}, "not kept": nil,
	} {
		l := newLab(t)
		l.Must("apply", l.Write("other", quickly))
		l.ServeStatus(&api.Status{Workloads: kept, Applied: true})
		before, file := len(l.Calls()), written(l, "web", deployment(1, "i:1", ""))
		created := func() bool {
			return slices.ContainsFunc(l.Calls()[before:], func(call string) bool { return strings.HasPrefix(call, "RunPodSandbox") })
		}
		const want = "note: the agent is working on it: deployment default/web, 0 of 1 pods updated, 0 available; " +
			"pod default/web-0 is not created yet"
		if kept != nil {
			l.InTime("--timeout", []string{"apply", "--wait", file}, func(code int, text string) bool {
				return code == exit.NotYet && strings.Contains(text, want)
			})
		} else if _, stderr := l.Must("apply", "--wait", file); strings.Contains(stderr, want) {
			t.Errorf("%s: %s", name, stderr)
		}
		if created() != (kept == nil) {
			t.Errorf("%s: pods created %t", name, created())
		}
	}
}
