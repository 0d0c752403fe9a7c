package snapshot

import (
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
)

// TestVolumesKeepTheirContent checks that a volume of a pod of the API server keeps its content while an object of it is
// missing, and that a volume that was never prepared does not count as one.
func TestVolumesKeepTheirContent(t *testing.T) {
	const text = podspectest.Minimal + "    volumeMounts: [{name: v, mountPath: /v}]\n  volumes: [{name: v, configMap: {name: none}}]\n"
	for _, c := range []struct {
		load     func(testing.TB, string) *podspec.Desired
		prepared bool
		want     model.Volume
	}{
		{podspectest.FromAPI, true, model.Volume{Prepared: true, Digest: "d", Wanted: "d"}},
		{podspectest.FromAPI, false, model.Volume{}},
		{podspectest.Desired, true, model.Volume{}},
	} {
		s := &Pod{Volumes: map[string]Volume{"v": {Prepared: c.prepared, Digest: "d"}}}
		d := c.load(t, text)
		if got := s.volumesOf(d)["v"]; got != c.want {
			t.Errorf("owner %q, prepared %t: %+v", d.Owner, c.prepared, got)
		}
	}
}
