package volume

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

func TestPathsAndPluginsAreTheKubelets(t *testing.T) {
	pod := state.Default().Pod("u1")
	below := "/var/lib/podctl/pods/u1/volumes/kubernetes.io~"
	tests := map[string]struct {
		source       v1.VolumeSource
		plugin, path string
	}{
		"emptyDir":    {v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, "empty-dir", below + "empty-dir/v"},
		"configMap":   {v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}, "configmap", below + "configmap/v"},
		"secret":      {v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}, "secret", below + "secret/v"},
		"downwardAPI": {v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}, "downward-api", below + "downward-api/v"},
		"projected":   {v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}, "projected", below + "projected/v"},
		"hostPath":    {v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/srv/x"}}, "", "/srv/x"},
		"image":       {v1.VolumeSource{Image: &v1.ImageVolumeSource{}}, "", ""},
		"nfs":         {v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			vol := &v1.Volume{Name: "v", VolumeSource: test.source}
			if got := podspec.VolumePlugin(vol); got != test.plugin {
				t.Errorf("VolumePlugin = %q, want %q", got, test.plugin)
			}
			c := Context{Pod: pod, Desired: &podspec.Desired{Pod: &v1.Pod{}}}
			if got := ok(c.Path(podspec.Volume{Volume: vol})); got != test.path {
				t.Errorf("Path = %q, want %q", got, test.path)
			}
		})
	}
}

func TestVolumesThatPodctlCannotProvide(t *testing.T) {
	c := newContext(t, emptyDirVolume("first"), v1.Volume{Name: "nfs", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}})
	_, prepared, err := onDisk(c, "nfs")
	for what, err := range map[string]error{"Prepare": Prepare(t.Context(), c, "nfs"), "onDisk": err} {
		unsupported := (*UnsupportedError)(nil)
		if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "spec.volumes[1]") {
			t.Errorf("%s: error %v, want an UnsupportedError that names the field", what, err)
		}
	}
	if prepared {
		t.Error("an unsupported volume is reported as prepared")
	}
}

func TestUnknownVolume(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	_, _, diskErr := onDisk(c, "other")
	_, wantedErr := wantedOf(c, "other")
	for what, err := range map[string]error{
		"Prepare": Prepare(t.Context(), c, "other"), "onDisk": diskErr, "Wanted": wantedErr,
	} {
		if err == nil || !strings.Contains(err.Error(), `default/web has no volume "other"`) {
			t.Errorf("%s: error %v, want one that names pod and volume", what, err)
		}
	}
}

func TestImageVolumesNeedNothing(t *testing.T) {
	c := newContext(t, v1.Volume{Name: "image", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{}}})
	prepare(t, c, "image")
	if digest, prepared, err := onDisk(c, "image"); digest != "" || !prepared || err != nil {
		t.Errorf("onDisk = %q, %v, %v; want prepared", digest, prepared, err)
	}
	wantGone(t, c.Pod.Dir())
}
