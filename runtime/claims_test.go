package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// TestUnusedClaims checks that a claim is removed once no pod uses it. It stays with its content while a pod uses it or
// may use it, including a pod that is created at the last moment.
func TestUnusedClaims(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	d := f.load(strings.NewReplacer("NAME", "web", "CLAIM", "data").Replace(claimant))
	claim := state.Claim{Namespace: "default", Name: "data"}
	ref, file := model.RefOf(d.Pod), filepath.Join(ok(f.layout.Pod(d.Pod.UID).Claims().Dir(claim)), "file")
	apply := func() {
		t.Helper()
		if outcome, err := f.engine.Pods.Apply(t.Context(), d, executor.Options{}); err != nil || outcome.Err() != nil {
			t.Fatal(err, outcome)
		}
	}
	unused := func() []gc.Garbage {
		t.Helper()
		found, err := f.engine.Garbage.UnusedClaims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	apply()
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := unused(); len(found) > 0 {
		t.Errorf("unused is %v, which a pod has", found)
	}
	checkpoint := f.layout.Pod(d.Pod.UID).Checkpoint().Path()
	if err := os.Rename(checkpoint, checkpoint+".aside"); err != nil {
		t.Fatal(err)
	}
	if found, err := f.engine.Garbage.UnusedClaims(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "pod default/web, which has no checkpoint") {
		t.Errorf("unused without a checkpoint: %v %v", found, err)
	}
	if err := os.Rename(checkpoint+".aside", checkpoint); err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.Pods.Delete(t.Context(), ref, executor.Options{}); err != nil {
		t.Fatal(err)
	}
	found := unused()
	if len(found) != 1 || found[0].Claim != "data" || found[0].Size == 0 {
		t.Fatalf("unused is %v, want the claim", found)
	}
	needed := func() error { return gc.ErrNeeded }
	if err := f.layout.Claims().Remove(t.Context(), claim, needed); !errors.Is(err, gc.ErrNeeded) {
		t.Error(err)
	}
	apply()
	if err := f.engine.Garbage.Remove(t.Context(), found[0]); !errors.Is(err, gc.ErrNeeded) {
		t.Errorf("a claim that a pod has come to use: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if _, err := f.engine.Pods.Delete(t.Context(), ref, executor.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := f.engine.Garbage.Remove(t.Context(), found[0]); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("the claim is still there")
	}
}

// TestStoredClaimNamesThatArePaths checks a pod whose checkpoint has a path as claimName: it can be listed and deleted,
// and its containers continue. Nothing at that path is changed, and all other work is done.
func TestStoredClaimNamesThatArePaths(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	victim := filepath.Join(filepath.Dir(f.layout.Root), "victim")
	if err := errors.Join(os.MkdirAll(victim, 0o755), os.WriteFile(filepath.Join(victim, "file"), []byte("precious"), 0o600)); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("NAME", "web", "CLAIM", "data").Replace(claimant)
	text = strings.Replace(text, "volumes: [", "volumes: [{name: w, persistentVolumeClaim: {claimName: other}}, ", 1)
	d := f.load(text)
	if _, err := f.pass(d); err != nil {
		t.Fatal(err)
	}
	unused := state.Claim{Namespace: "default", Name: "unused"}
	if err := errors.Join(os.MkdirAll(ok(f.layout.Claims().Dir(unused)), 0o755)); err != nil {
		t.Fatal(err)
	}
	f.shape.before = text
	before := f.ids()["a"]
	for _, name := range []string{"../../../victim", "outer/inner"} {
		rename := func(d *podspec.Desired) { d.Pod.Spec.Volumes[1].PersistentVolumeClaim.ClaimName = name }
		checkpoint, err := f.layout.Pod(d.Pod.UID).Checkpoint().Read()
		if err != nil {
			t.Fatal(err)
		}
		rename(checkpoint.Applied)
		if err = f.layout.Pod(d.Pod.UID).Checkpoint().Write(checkpoint); err != nil {
			t.Fatal(err)
		}
		rename(d)
		if _, err = f.engine.Pods.Apply(t.Context(), d, executor.Options{}); err != nil {
			t.Error(err)
		}
		if after := f.ids()["a"]; after != before || before == "" {
			t.Errorf("container %s runs, and %s did", after, before)
		}
		found, err := f.engine.Garbage.UnusedClaims(t.Context())
		if err != nil || !slices.ContainsFunc(found, func(g gc.Garbage) bool { return g.Claim == "unused" }) {
			t.Errorf("unused are %+v, %v, and one is missing", found, err)
		}
	}
	outcome, err := f.engine.Pods.Delete(t.Context(), model.RefOf(d.Pod), executor.Options{Options: plan.Options{RemoveVolumes: true}})
	if err != nil || outcome.Err() == nil || !strings.Contains(outcome.Err().Error(), `"outer/inner"`) {
		t.Errorf("deleting: %v %v, want that the claim is named", err, outcome.Err())
	}
	if known, err := f.layout.Pod(d.Pod.UID).HasDir(); err != nil || known {
		t.Errorf("the pod is still there: %v", err)
	}
	if _, err := os.Stat(ok(f.layout.Claims().Dir(state.Claim{Namespace: "default", Name: "other"}))); err == nil {
		t.Error("the other claim of the pod is still there")
	}
	if outcome, err := f.engine.Pods.Apply(t.Context(), d, executor.Options{}); err != nil ||
		len(outcome.Plan.Holds) == 0 || !strings.Contains(outcome.Plan.Holds[0].Message, `"outer/inner"`) {
		t.Errorf("a new start: %v %+v, want that the claim is refused", err, outcome.Plan.Holds)
	}
	if content, err := os.ReadFile(filepath.Join(victim, "file")); err != nil || string(content) != "precious" {
		t.Errorf("the victim has %q %v", content, err)
	}
}

// TestRotationDoesNotFollowLinks checks a container that replaces a log directory by a link. The target of the link is
// neither renamed nor removed.
func TestRotationDoesNotFollowLinks(t *testing.T) {
	f := newFaultLab(t, faultShape{before: faultShapes()["two containers"].after})
	ref := model.RefOf(f.load(faultShapes()["two containers"].after).Pod)
	path := ok(f.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name).File("a", 0))
	victim := t.TempDir()
	var want []string
	for _, name := range []string{"", ".1", ".2", ".3", ".4", ".5", ".6"} {
		want = append(want, "0.log"+name)
		if err := os.WriteFile(filepath.Join(victim, "0.log"+name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll(filepath.Dir(path)), os.Symlink(victim, filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	if err := gc.NewRotator(f.world()).Rotate(t.Context(), &gc.RunLog{Pod: ref, Container: "a", ContainerID: f.ids()["a"]}); err == nil {
		t.Error("it was rotated")
	}
	entries, err := os.ReadDir(victim)
	if err != nil || len(entries) != len(want) {
		t.Errorf("the target of the link has %v %v", entries, err)
	}
	for i, entry := range entries {
		if entry.Name() != want[i] {
			t.Errorf("behind the link lies %s, want %s", entry.Name(), want[i])
		}
	}
}

// TestStartDoesNotFollowLogLinks checks that the runtime does not follow a link that replaced the next log.
func TestStartDoesNotFollowLogLinks(t *testing.T) {
	l := newLab(t, "i:1")
	pod := podNamed("web", "")
	d := l.manifest(pod)
	log := ok(l.layout.Pod(d.Pod.UID).Logs("default", "web").File("app", 0))
	outside := filepath.Join(t.TempDir(), "made")
	if err := errors.Join(os.MkdirAll(filepath.Dir(log), 0o755), os.Symlink(outside, log)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.pass(d); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("the log was written outside")
	}
	if info, err := os.Lstat(log); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the log: %v %v", info, err)
	}
}
