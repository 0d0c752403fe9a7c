package criconfig

import (
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// TestDevices checks that devices of plugins get into the message of a container, and replace nothing in it.
func TestDevices(t *testing.T) {
	config := &runtimeapi.ContainerConfig{
		Envs:        []*runtimeapi.KeyValue{{Key: "A", Value: []byte("own")}},
		Mounts:      []*runtimeapi.Mount{{ContainerPath: "/own"}},
		Annotations: map[string]string{AnnotationRestartCount: "0"},
	}
	addDevices(config, nil)
	addDevices(config, &model.DeviceConfig{
		Env:         []model.DeviceEnv{{Name: "A", Value: "plugin"}},
		Mounts:      []model.DeviceMount{{HostPath: "/h", ContainerPath: "/c", ReadOnly: true}},
		Nodes:       []model.DeviceNode{{HostPath: "/dev/h", ContainerPath: "/dev/c", Permissions: "rw"}},
		Annotations: map[string]string{AnnotationRestartCount: "7", "x": "y"},
		CDI:         []string{"example.com/gpu=0"},
	})
	// A runtime uses the last of two variables with one name.
	if e := config.GetEnvs(); len(e) != 2 || string(e[0].GetValue()) != "plugin" || string(e[1].GetValue()) != "own" {
		t.Errorf("%v", e)
	}
	if m := config.GetMounts(); len(m) != 2 || m[0].GetHostPath() != "/h" || !m[0].GetReadonly() {
		t.Errorf("%v", m)
	}
	if a := config.GetAnnotations(); a[AnnotationRestartCount] != "0" || a["x"] != "y" {
		t.Errorf("%v", a)
	}
	if d := config.GetDevices(); len(d) != 1 || d[0].GetHostPath() != "/dev/h" || d[0].GetContainerPath() != "/dev/c" ||
		d[0].GetPermissions() != "rw" {
		t.Errorf("%v", d)
	}
	if c := config.GetCDIDevices(); len(c) != 1 || !strings.HasSuffix(c[0].GetName(), "=0") {
		t.Errorf("%v", c)
	}
}
