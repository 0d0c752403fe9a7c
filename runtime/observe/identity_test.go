package observe

import (
	"errors"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// TestUIDsOfOtherPods checks that records of another pod with the same UID, podctl's or the runtime's, are refused, and
// that the error names both pods.
func TestUIDsOfOtherPods(t *testing.T) {
	web := model.PodRef{Namespace: "ns", Name: "web", UID: "u"}
	for name, c := range map[string]struct {
		of    model.PodRef
		taken bool
	}{
		"nobody's":                             {model.PodRef{}, false},
		"its own":                              {web, false},
		"its own, of a checkpoint without uid": {model.PodRef{Namespace: "ns", Name: "web"}, false},
		"another name":                         {model.PodRef{Namespace: "ns", Name: "db", UID: "u"}, true},
		"another namespace":                    {model.PodRef{Namespace: "other", Name: "web", UID: "u"}, true},
	} {
		err := checkRecord(web, &state.Checkpoint{Pod: c.of})
		if errors.As(err, new(*UIDTakenError)) != c.taken {
			t.Errorf("%s: %v", name, err)
		}
		if c.taken && err.Error() != "pod ns/web has the uid \"u\", which is that of pod "+c.of.String()+
			": give it another metadata.uid, or delete pod "+c.of.String()+" first" {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := newLab(t)
	d := l.pod("web")
	l.remember(d, &state.Checkpoint{})
	evil := model.PodRef{Namespace: "default", Name: "evil", UID: d.Pod.UID}
	if _, err := l.observer.Observe(t.Context(), evil, nil); !errors.As(err, new(*UIDTakenError)) {
		t.Errorf("Observe: %v", err)
	}
}

// TestLabelsOfOtherPods checks that a label of another pod is refused, also on the second of two records.
func TestLabelsOfOtherPods(t *testing.T) {
	l := newLab(t)
	web := l.pod("web")
	ref := model.RefOf(web.Pod)
	other := labelsOf(model.PodRef{Namespace: "default", Name: "other", UID: ref.UID})
	static := labelsOf(model.PodRef{Namespace: "default", Name: "web-node", UID: ref.UID})
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		taken               bool
	}{
		"none": {}, "its own": {labels: labelsOf(ref)}, "another's": {labels: other, taken: true},
		"of another uid":         {labels: labelsOf(model.PodRef{Namespace: "default", Name: "other", UID: "x"})},
		"without a name":         {labels: map[string]string{criconfig.LabelPodUID: string(ref.UID)}},
		"other namespace":        {labels: labelsOf(model.PodRef{Namespace: "kube-system", Name: "web", UID: ref.UID}), taken: true},
		"a kubelet's static pod": {labels: static, annotations: map[string]string{criconfig.AnnotationRestartCount: "0"}},
		"podctl's own of that name": {
			labels:      static,
			annotations: map[string]string{criconfig.AnnotationSandboxSpecHash: "1"},
			taken:       true,
		},
		"a static pod of other name": {labels: labelsOf(model.PodRef{Namespace: "default", Name: "website", UID: ref.UID}), taken: true},
	} {
		err := checkLabels(ref, &runtimeapi.Container{Labels: c.labels, Annotations: c.annotations})
		if errors.As(err, new(*UIDTakenError)) != c.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
	for source, taken := range map[string]bool{"file": false, "http": false, "api": true, "": true} {
		err := checkLabels(ref, &runtimeapi.PodSandbox{Labels: static, Annotations: map[string]string{podspec.AnnotationConfigSource: source}})
		if errors.As(err, new(*UIDTakenError)) != taken {
			t.Errorf("the sandbox of a kubelet's pod from %q: %v", source, err)
		}
	}
	records := []*runtimeapi.Container{{Labels: labelsOf(ref)}, {Labels: other}}
	if err := CheckAllLabels(ref, records); !errors.As(err, new(*UIDTakenError)) {
		t.Errorf("the second record of two: %v", err)
	}
}

// TestPodsOfOtherRuntimes checks that a pod that was applied to another runtime is refused, because it would run twice.
// If this runtime has records of it, it is the same one at another address.
func TestPodsOfOtherRuntimes(t *testing.T) {
	l := newLab(t, "i:1")
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	for name, c := range map[string]struct {
		s      snapshot.Pod
		failed bool
	}{
		"never applied": {snapshot.Pod{Checkpoint: &state.Checkpoint{}}, false},
		"applied here":  {snapshot.Pod{Checkpoint: &state.Checkpoint{Endpoint: l.client.Endpoint.Address}}, false},
		"elsewhere":     {snapshot.Pod{Checkpoint: &state.Checkpoint{Endpoint: "unix:///other.sock"}}, true},
		"has a sandbox": {
			snapshot.Pod{
				Checkpoint: &state.Checkpoint{Endpoint: "unix:///other.sock"},
				Sandboxes:  []*runtimeapi.PodSandboxStatus{{}},
			},
			false,
		},
		"has a record": {
			snapshot.Pod{
				Checkpoint: &state.Checkpoint{Endpoint: "unix:///other.sock"},
				Containers: []snapshot.Container{{}},
			},
			false,
		},
	} {
		err := l.observer.checkEndpoint(t.Context(), ref, &c.s)
		want := "pod default/web runs on unix:///other.sock, not on " + l.client.Endpoint.Address
		if (err != nil) != c.failed || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.remember(d, &state.Checkpoint{Endpoint: "unix:///other.sock"})
	if _, _, err := l.observer.Input(t.Context(), ref, d, plan.Options{}); err == nil ||
		!strings.Contains(err.Error(), "--runtime-endpoint") {
		t.Errorf("the input of a plan: %v", err)
	}
}
