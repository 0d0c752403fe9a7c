package criconfig

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// addDevices adds what device plugins need in a container. Their variables and mounts come before those of the
// manifest, which count if both set the same (kubelet: GenerateRunContainerOptions). Annotations of podctl stay.
func addDevices(config *runtimeapi.ContainerConfig, d *model.DeviceConfig) {
	if d == nil {
		return
	}
	env, mounts := []*runtimeapi.KeyValue{}, []*runtimeapi.Mount{}
	for _, e := range d.Env {
		env = append(env, &runtimeapi.KeyValue{Key: e.Name, Value: []byte(e.Value)})
	}
	for _, m := range d.Mounts {
		mounts = append(mounts, &runtimeapi.Mount{
			HostPath: m.HostPath, ContainerPath: m.ContainerPath, Readonly: m.ReadOnly,
		})
	}
	config.Envs, config.Mounts = append(env, config.GetEnvs()...), append(mounts, config.GetMounts()...)
	for name, value := range d.Annotations {
		if _, own := config.GetAnnotations()[name]; !own {
			config.Annotations[name] = value
		}
	}
	for _, n := range d.Nodes {
		config.Devices = append(config.Devices, &runtimeapi.Device{
			HostPath: n.HostPath, ContainerPath: n.ContainerPath, Permissions: n.Permissions,
		})
	}
	for _, name := range d.CDI {
		config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
}
