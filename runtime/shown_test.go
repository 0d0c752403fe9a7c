package runtime

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state/podlogs"
)

// TestSnapshotShowsThePodAtThatTime checks that a pod in a snapshot looks as it did at that time, with debug containers
// and an interrupted deletion.
func TestSnapshotShowsThePodAtThatTime(t *testing.T) {
	text := faultShapes()["two containers"].after
	f := newFaultLab(t, faultShape{before: text})
	d := f.load(text)
	debug := &v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{
		Name:            "look",
		Image:           "i:1",
		ImagePullPolicy: v1.PullIfNotPresent,
	}}
	if outcome, err := f.engine.Pods.Debug(t.Context(), d, debug, executor.Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome)
	}
	checkpoint, err := f.layout.Pod(d.Pod.UID).Checkpoint().Read()
	if err != nil {
		t.Fatal(err)
	}
	checkpoint.Deletion = &model.Deletion{At: f.clock.Now(), GracePeriodSeconds: 7}
	if err = f.layout.Pod(d.Pod.UID).Checkpoint().Write(checkpoint); err != nil {
		t.Fatal(err)
	}
	live, err := f.engine.Lister.List(t.Context(), []*podspec.Desired{d})
	if err != nil || len(live[0].Status.EphemeralContainerStatuses) != 1 || *live[0].DeletionGracePeriodSeconds != 7 {
		t.Fatalf("%v %+v", err, live)
	}
	s, err := f.engine.Observer.Snapshot(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := snapshot.Recording{s}.List(t.Context(), []*podspec.Desired{d})
	if diff := cmp.Diff(live, recorded); diff != "" || err != nil {
		t.Errorf("%v (-live +recorded)\n%s", err, diff)
	}
}

// TestTwoRotationsInASecond checks that the first rotated log is not overwritten.
func TestTwoRotationsInASecond(t *testing.T) {
	text := faultShapes()["two containers"].after
	f := newFaultLab(t, faultShape{before: text})
	ref, id := model.RefOf(f.load(text).Pod), f.ids()["a"]
	path := ok(f.layout.Pod(ref.UID).Logs(ref.Namespace, ref.Name).File("a", 0))
	for _, line := range []string{"first", "second"} {
		full := append([]byte(line), make([]byte, 10<<20)...)
		if err := os.WriteFile(path, full, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := gc.NewRotator(f.world()).Rotate(t.Context(), &gc.RunLog{Pod: ref, Container: "a", ContainerID: id}); err != nil {
			t.Fatal(err)
		}
	}
	aside, err := os.ReadFile(podlogs.RotatedLog(path, f.clock.Now()))
	if err != nil || !bytes.HasPrefix(aside, []byte("first")) {
		t.Errorf("moved aside are %d bytes, %v", len(aside), err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(now, []byte("second")) {
		t.Errorf("the log has %d bytes, %v", len(now), err)
	}
}
