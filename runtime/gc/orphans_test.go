package gc

import (
	"errors"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
)

// kubelets are the records of one pod as a kubelet makes them, which a test may change.
type kubelets struct {
	sandbox   *runtimeapi.PodSandboxConfig
	container *runtimeapi.ContainerConfig
	// live is the result of the search for a kubelet.
	live error
}

// kubeletPod creates a pod of a kubelet, with a directory.
func (l *lab) kubeletPod(ref model.PodRef, change func(*kubelets)) {
	l.t.Helper()
	k := &kubelets{
		sandbox: &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: ref.Name, Namespace: ref.Namespace, Uid: string(ref.UID)},
			Labels:   labelsOf(ref), Annotations: map[string]string{podspec.AnnotationConfigSource: "api"},
		},
		container: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "a"}, Image: &runtimeapi.ImageSpec{Image: "i:1"},
			Labels: labelsOf(ref), Annotations: map[string]string{criconfig.AnnotationPodTerminationGracePeriod: "7"},
		},
	}
	if change != nil {
		change(k)
	}
	l.kubelet = k.live
	reply, err := l.client.RunPodSandbox(l.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: k.sandbox})
	if err == nil && k.container != nil {
		_, err = l.client.CreateContainer(l.t.Context(), &runtimeapi.CreateContainerRequest{
			PodSandboxId: reply.GetPodSandboxId(), Config: k.container,
		})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if dir := l.layout.Pod(ref.UID).Dir(); dir != "" {
		_ = os.MkdirAll(dir, 0o750) // A uid may be no name of a file.
	}
}

// orphans returns the orphans that are found.
func (l *lab) orphans() []Orphan {
	l.t.Helper()
	found, err := Orphans{l.Collector}.Find(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return found
}

// TestOrphans checks which pods of the runtime count as those that a kubelet with this root directory has left.
func TestOrphans(t *testing.T) {
	ref := model.PodRef{Namespace: "ns", Name: "web", UID: "u-1"}
	for what, c := range map[string]struct {
		ref    model.PodRef
		change func(*kubelets)
		after  func(*lab)
		want   int
	}{
		"a pod":                {want: 1},
		"without a container":  {change: func(k *kubelets) { k.container = nil }, want: 1},
		"a uid that is a path": {ref: model.PodRef{Namespace: "ns", Name: "web", UID: "../pods/u-1"}},
		"a namespace that is a path": {
			ref: model.PodRef{Namespace: "..", Name: "web", UID: "u-1"},
		},
		"a name that is a path": {ref: model.PodRef{Namespace: "ns", Name: "a/b", UID: "u-1"}},
		"a static pod": {change: func(k *kubelets) {
			k.sandbox.Annotations[podspec.AnnotationConfigSource] = "file"
		}},
		"a pod of another program": {change: func(k *kubelets) { k.sandbox.Annotations = nil }},
		"a pod of podctl": {change: func(k *kubelets) {
			maps.Copy(k.sandbox.GetAnnotations(), ours())
		}},
		"a container of podctl":          {change: func(k *kubelets) { k.container.Annotations = ours() }},
		"a container of another program": {change: func(k *kubelets) { k.container.Labels = nil }},
		"a container of another pod": {change: func(k *kubelets) {
			k.container.Labels[criconfig.LabelPodUID] = "u-2"
		}},
		"a label with another name": {change: func(k *kubelets) { k.sandbox.Labels[criconfig.LabelPodName] = "db" }},
		"a label with the uid of another pod": {change: func(k *kubelets) {
			k.sandbox.Metadata.Uid = "u-2"
		}},
		"two sandboxes that disagree": {after: func(l *lab) {
			other := ref
			other.Name = "db"
			l.kubeletPod(other, nil)
		}},
		"no directory": {after: func(l *lab) { l.must(os.Remove(l.layout.Pod(ref.UID).Dir())) }},
		"a damaged checkpoint": {after: func(l *lab) {
			l.must(os.WriteFile(l.layout.Pod(ref.UID).Checkpoint().Path(), []byte("{"), 0o600))
		}},
		"a kubelet runs": {change: func(k *kubelets) { k.live = errors.New("it runs") }},
	} {
		l := newLab(t)
		if c.ref == (model.PodRef{}) {
			c.ref = ref
		}
		l.kubeletPod(c.ref, c.change)
		var before []Orphan
		if c.after != nil {
			before = l.orphans()
			c.after(l)
		}
		if found := l.orphans(); len(found) != c.want {
			t.Errorf("%s: %+v", what, found)
		}
		for _, o := range before {
			if err := (Orphans{l.Collector}).Adopt(t.Context(), o); !errors.Is(err, ErrNeeded) {
				t.Errorf("%s: adopted, %v", what, err)
			}
		}
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestAdopt checks the record of an adopted pod, and that housekeeping does not touch the pod before.
func TestAdopt(t *testing.T) {
	l, ref := newLab(t), model.PodRef{Namespace: "ns", Name: "web", UID: "u-1"}
	l.kubeletPod(ref, nil)
	l.clock.Advance(time.Minute)
	if found, err := l.Upkeep(t.Context(), 0); err != nil || len(found) > 0 {
		t.Errorf("garbage: %+v %v", found, err)
	}
	found := l.orphans()
	want := []Orphan{{Pod: ref, Began: l.clock.Now().Add(-time.Minute), grace: 7}}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(Orphan{}), cmpopts.EquateApproxTime(time.Second)); diff != "" {
		t.Fatal(diff)
	}
	l.must(Orphans{l.Collector}.Adopt(t.Context(), found[0]))
	c, err := l.layout.Pod(ref.UID).Checkpoint().Read()
	l.must(err)
	if !c.Applied.FromCluster() || c.Pod != ref || c.Deletion == nil || c.Deletion.GracePeriodSeconds != 7 ||
		c.Endpoint != l.client.Endpoint.Address {
		t.Errorf("%+v", c)
	}
	if again := l.orphans(); len(again) > 0 {
		t.Errorf("after the adoption: %+v", again)
	}
	if err := (Orphans{l.Collector}).Adopt(t.Context(), found[0]); !errors.Is(err, ErrNeeded) {
		t.Errorf("adopted twice: %v", err)
	}
}
