package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

const (
	quickly = "  containers: [{name: a, image: 'i:1'}]\n"
	slowly  = "  containers: [{name: a, image: 'i:1', lifecycle: {preStop: {sleep: {seconds: 1}}}}]\n"
)

// TestPodsAreDeletedInParallel checks that a slow pod does not delay the deletion of others, and that each line names
// its pod.
func TestPodsAreDeletedInParallel(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("slow", slowly), l.Write("quick", quickly))
	stdout, stderr := l.Must("delete", "slow", "quick")
	if stdout != "pod default/quick deleted\npod default/slow deleted\n" {
		t.Errorf("the pods were not deleted in parallel:\n%s", stdout)
	}
	if !strings.Contains(stderr, "✓ default/slow  stop    a") {
		t.Errorf("the step does not name its pod:\n%s", stderr)
	}
	l.Must("apply", l.Write("slow", slowly), l.Write("quick", quickly))
	if stdout, _ = l.Must("delete", "--parallel", "1", "slow", "quick"); !strings.HasPrefix(stdout, "pod default/slow") {
		t.Errorf("--parallel 1 deleted the pods in parallel:\n%s", stdout)
	}
}

// TestDeleteContinuesAfterMissingPods checks that pods are deleted even if others do not exist, as in kubectl.
func TestDeleteContinuesAfterMissingPods(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("here", quickly))
	code, stdout, stderr := l.Call("delete", "absent", "here", "gone", "--dry-run")
	if code != exit.Error || !strings.Contains(stdout, "Plan: 2 to remove") {
		t.Errorf("dry run: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = l.Call("delete", "absent", "here", "gone")
	if code != exit.Error || stdout != "pod default/here deleted\n" ||
		!strings.Contains(stderr, "no pod default/absent") || !strings.Contains(stderr, "no pod default/gone") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestIgnoreNotFound checks that --ignore-not-found accepts missing pods, but not running pods
// without a checkpoint.
func TestIgnoreNotFound(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("here", quickly))
	if stdout, _ := l.Must("delete", "--ignore-not-found", "absent", "here"); stdout != "pod default/here deleted\n" {
		t.Error(stdout)
	}
	if stdout, stderr := l.Must("delete", "--ignore-not-found", "absent"); stdout+stderr != "" {
		t.Error(stdout, stderr)
	}
	l.Must("apply", l.Write("lost", quickly))
	if err := os.RemoveAll(l.Path("state/pods")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := l.Call("delete", "--ignore-not-found", "absent", "lost"); code != exit.Error ||
		strings.Contains(stderr, "absent") ||
		!strings.Contains(stderr, "the runtime has a pod of this name that podctl created") {
		t.Errorf("a running pod counts as deleted: exit code %d\n%s", code, stderr)
	}
	l.Must("delete", l.Path("lost.yaml"))
}

// TestNamespaceOfTheCommand checks that a manifest without a namespace gets that of the command, and that another
// namespace is refused.
func TestNamespaceOfTheCommand(t *testing.T) {
	l := newLab(t)
	path := l.Write("here", quickly)
	if stdout, _ := l.Must("-n", "other", "apply", path); !strings.HasPrefix(stdout, "pod other/here") {
		t.Error(stdout)
	}
	if stdout, stderr := l.Must("plan", "-n", "other"); !strings.Contains(stdout, "other/here") ||
		strings.Contains(stdout+stderr, path) {
		t.Errorf("the source is reported as changed:\n%s%s", stdout, stderr)
	}
	if stdout, _ := l.Must("delete", path); stdout != "pod default/here not found\n" {
		t.Error(stdout)
	}
	if stdout, _ := l.Must("-n", "other", "delete", path); stdout != "pod other/here deleted\n" {
		t.Error(stdout)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path,
			[]byte(strings.Replace(string(text), "{name: here}", "{name: here, namespace: default}", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"apply"}, {"delete"}, {"validate"}, {"render"}, {"plan", "--pin"}} {
		if code, stdout, stderr := l.Call(append(command, "-n", "other", path)...); code != exit.Error ||
			stdout != "" ||
			!strings.Contains(stderr, "is not in the namespace other") {
			t.Errorf("%v: exit code %d\n%s%s", command, code, stdout, stderr)
		}
	}
}

// TestDeletionRemovesCgroups checks that a deletion removes both cgroups of a pod whose resources were edited.
func TestDeletionRemovesCgroups(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1', resources: {requests: {memory: 32Mi}}}]\n"))
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n"))
	pattern := "/sys/fs/cgroup/cpu/" + l.CgroupRoot + "/kubepods/*/pod*"
	if before, err := filepath.Glob(pattern); err != nil || len(before) == 0 {
		t.Skip("podctl cannot make cgroups on this machine, or they are of version 2")
	}
	l.Must("delete", "web")
	if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestDeletionHasNoDocument checks that an output format is refused without --dry-run.
func TestDeletionHasNoDocument(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", quickly))
	if code, _, stderr := l.Call("delete", "-o", "json", "web"); code != exit.Error ||
		!strings.Contains(stderr, "--dry-run") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	l.Must("delete", "web")
}
