package daemon

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/criconfig"
)

// TestStaticUIDs checks which pods keep the uid that a kubelet has given their manifest.
func TestStaticUIDs(t *testing.T) {
	hash := func(digit string) string { return strings.Repeat(digit, 32) }
	sandbox := func(name, uid, source string, created int64) *runtimeapi.PodSandbox {
		s := &runtimeapi.PodSandbox{CreatedAt: created, Annotations: map[string]string{}, Labels: map[string]string{
			criconfig.LabelPodNamespace: "a", criconfig.LabelPodName: name, criconfig.LabelPodUID: uid,
		}}
		if source != "" {
			s.Annotations[podspec.AnnotationConfigSource] = source
		}
		return s
	}
	got := uidsOf([]*runtimeapi.PodSandbox{
		sandbox("etcd-n1", hash("1"), "file", 2), sandbox("etcd-n1", hash("2"), "file", 1),
		sandbox("web-n1", hash("3"), "http", 1),
		sandbox("api-n1", hash("4"), "api", 1),
		sandbox("written-n1", "6d1c8f6e-0a1f-4d39-8d0f-5f0a5e7a0001", "file", 1),
		sandbox("etcd-events-n2", hash("5"), "file", 1),
		sandbox("unknown-n1", hash("6"), "", 1),
		sandbox("not-n1", hash("x"), "file", 1),
	}, "N1")
	want := sources.UIDs{
		{Namespace: "a", Name: "etcd"}: types.UID(hash("1")), {Namespace: "a", Name: "web"}: types.UID(hash("3")),
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
