package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

func testTime() time.Time { return time.Date(2026, 3, 1, 12, 30, 15, 123456789, time.UTC) }

func desired(namespace, name string, uid types.UID) *podspec.Desired {
	return &podspec.Desired{
		Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "app:1"}}},
		},
		Objects: podspec.Objects{Secrets: map[string]*v1.Secret{
			"s": {ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": {0, 1, 255}}},
		}},
		Origin: podspec.Origin{Source: "/srv/web.yaml"},
	}
}

// fullCheckpoint returns a checkpoint with every field set.
func fullCheckpoint() *Checkpoint {
	return &Checkpoint{
		Version:   1,
		Pod:       model.PodRef{Namespace: "default", Name: "web", UID: testUID},
		AppliedAt: testTime(),
		Source:    "/srv/web.yaml",
		Endpoint:  "unix:///run/containerd/containerd.sock",
		Memory: model.Memory{
			Applied:    desired("default", "web", testUID),
			Generation: 3,
			Deletion:   &model.Deletion{At: testTime(), GracePeriodSeconds: 30},
			StartTime:  testTime().Add(-time.Hour),
			Completion: &model.Completion{Phase: v1.PodSucceeded, At: testTime(), DesiredDigest: "sha256:ab:key:cd"},
			Probes: map[string]map[model.ProbeType]model.ProbeRecord{
				"c1": {model.Liveness: {
					Result:    model.ProbeSuccess,
					Last:      model.ProbeFailure,
					Run:       2,
					CountedAt: testTime(),
					Message:   "refused",
				}},
			},
			Backoffs:        map[string]model.Backoff{"app": {Duration: 20 * time.Second, LastUpdate: testTime(), Key: "v2:x:key:y"}},
			StartErrors:     map[string]model.StartError{"app": {Reason: "ErrImagePull", Message: "no such image", At: testTime()}},
			PendingRestarts: map[string]string{"app": "c0"},
			Actuated: &model.Actuated{Containers: map[string]v1.ResourceRequirements{
				"app": {Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
			}},
		},
	}
}

// exported ignores unexported fields of podspec.
var exported = cmpopts.IgnoreUnexported(podspec.Desired{})

func TestCheckpointRoundTrip(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	want := fullCheckpoint()
	if err := pod.Checkpoint().Write(want); err != nil {
		t.Fatal(err)
	}
	got, err := pod.Checkpoint().Read()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fullCheckpoint(), got, exported); diff != "" {
		t.Errorf("checkpoint differs (-want +got):\n%s", diff)
	}
	if entries := names(t, pod.Dir()); len(entries) != 1 {
		t.Errorf("the pod's directory holds %v, want the checkpoint alone", entries)
	}
}

func TestMissingCheckpointIsEmpty(t *testing.T) {
	l := newLayout(t)
	j, err := l.Pod(testUID).Checkpoint().Read()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Checkpoint{Version: 1}, j, exported); diff != "" {
		t.Errorf("checkpoint differs (-want +got):\n%s", diff)
	}
	wantGone(t, l.Root)
}

func TestLostBackoffsAreNotNoBackoffs(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	for _, backoffs := range []map[string]model.Backoff{nil, {}} {
		if err := pod.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Backoffs: backoffs}}); err != nil {
			t.Fatal(err)
		}
		got, err := pod.Checkpoint().Read()
		if err != nil {
			t.Fatal(err)
		}
		if (got.Backoffs == nil) != (backoffs == nil) {
			t.Errorf("wrote %#v, read %#v", backoffs, got.Backoffs)
		}
	}
}

func TestUnusableCheckpoints(t *testing.T) {
	tests := map[string]struct {
		text string
		want error
	}{
		"empty file":                       {"", ErrDamaged},
		"cut off":                          {`{"version":1,"applied":{"pod":{"meta`, ErrDamaged},
		"not JSON":                         {"\x00\x00\x00", ErrDamaged},
		"another document":                 {`[1,2,3]`, ErrDamaged},
		"null":                             {`null`, ErrDamaged},
		"no version":                       {`{"generation":3}`, ErrDamaged},
		"a field of the wrong type":        {`{"version":1,"generation":"three"}`, ErrDamaged},
		"two documents":                    {`{"version":1}{"version":1}`, ErrDamaged},
		"deep nesting":                     {`{"version":1,"x":` + strings.Repeat("[", 100000), ErrDamaged},
		"newer version":                    {`{"version":2,"generation":3}`, ErrNewer},
		"newer version with another shape": {`{"version":9,"generation":{"count":3}}`, ErrNewer},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := newLayout(t).Pod(testUID)
			if err := pod.MakeDir(pod.Dir(), 0o750); err != nil {
				t.Fatal(err)
			}
			write(t, pod.Checkpoint().Path(), test.text)
			j, err := pod.Checkpoint().Read()
			unusable := (*CheckpointError)(nil)
			if j != nil || !errors.As(err, &unusable) || !errors.Is(err, test.want) {
				t.Fatalf("ReadCheckpoint = %v, %v; want a CheckpointError with %v", j, err, test.want)
			}
			for _, part := range []string{pod.Checkpoint().Path(), "remove the file", "this does not affect running containers"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestUnknownFieldsOfTheSameVersionAreDropped(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := pod.MakeDir(pod.Dir(), 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, pod.Checkpoint().Path(), `{"version":1,"generation":3,"later":{"a":[1]}}`)
	j, err := pod.Checkpoint().Read()
	if err != nil || j.Generation != 3 {
		t.Fatalf("ReadCheckpoint = %+v, %v; want generation 3", j, err)
	}
	if err = pod.Checkpoint().Write(j); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(pod.Checkpoint().Path())
	if err != nil || strings.Contains(string(text), "later") {
		t.Errorf("checkpoint is %s (%v), want it without the unknown field", text, err)
	}
}

func TestCheckpointDoesNotFollowLinks(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	other := filepath.Join(t.TempDir(), "other.json")
	write(t, other, `{"version":1,"generation":9}`)
	if err := pod.MakeDir(pod.Dir(), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, pod.Checkpoint().Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := pod.Checkpoint().Read(); !errors.Is(err, ErrDamaged) {
		t.Errorf("reading through a link: error %v, want ErrDamaged", err)
	}
	if err := pod.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 1}}); err != nil {
		t.Fatal(err)
	}
	wantMode(t, pod.Checkpoint().Path(), 0o600)
	if text, err := os.ReadFile(other); err != nil || !strings.Contains(string(text), `"generation":9`) {
		t.Errorf("the other file is now %s (%v)", text, err)
	}
}

func TestCheckpointThatIsADirectoryOrPipeIsDamaged(t *testing.T) {
	for name, create := range map[string]func(string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":      func(path string) error { return mkfifo(path) },
		"huge":      func(path string) error { return sparse(path, checkpointMax+1) },
	} {
		t.Run(name, func(t *testing.T) {
			pod := newLayout(t).Pod(testUID)
			if err := pod.MakeDir(pod.Dir(), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := create(pod.Checkpoint().Path()); err != nil {
				t.Fatal(err)
			}
			if _, err := pod.Checkpoint().Read(); !errors.Is(err, ErrDamaged) {
				t.Errorf("error %v, want ErrDamaged", err)
			}
		})
	}
}

// FuzzDecodeCheckpoint decodes arbitrary text. It checks that the result is a checkpoint or an error, and that a
// checkpoint can be written and read again.
func FuzzDecodeCheckpoint(f *testing.F) {
	full, err := json.Marshal(fullCheckpoint())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(full), `{"version":1}`, `{"version":2}`, `null`, `[]`, `{"version":1,"probes":{"c":null},"applied":{"pod":null}}`,
		`{"version":1,"applied":{"pod":{},"objects":{"secrets":{"a":null}}}}`,
		`{"version":1,"actuated":{"containers":{"a":{"limits":{"cpu":"1e9999"}}}}}`,
		`{"version":1,"startTime":"yesterday"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := decodeCheckpoint(text)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Errorf("error %v is neither ErrDamaged nor ErrNewer", err)
			}
			return
		}
		j.name()
		again, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		second, err := decodeCheckpoint(again)
		if err != nil {
			t.Fatalf("the written file cannot be read: %v", err)
		}
		if third, err := json.Marshal(second); err != nil || !bytes.Equal(again, third) {
			t.Errorf("the written file is read as something else: %v\n%s\n%s", err, again, third)
		}
	})
}
