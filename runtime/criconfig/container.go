package criconfig

import (
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Container returns the message that creates a container (kubelet: generateContainerConfig). Its errors name the field.
// The kubelet reports them as CreateContainerConfigError.
func Container(in ContainerInput) (*runtimeapi.ContainerConfig, error) {
	pod, c := in.Desired.Pod, in.Container.Container
	image := in.Images[c.Image]
	if image.ID == "" {
		return nil, fmt.Errorf("image %s is not present; pull it, or apply with --pull missing", c.Image)
	}
	if err := CheckUser(pod, in.Container, image); err != nil {
		return nil, err
	}
	env, err := environment(&in)
	if err != nil {
		return nil, err
	}
	command, args, err := env.Command(c.Command, c.Args)
	if err != nil {
		return nil, fmt.Errorf("%s.%w", in.Container.Path, err)
	}
	mounted, err := mounts(&in)
	if err != nil {
		return nil, err
	}
	secured, err := security(&in)
	if err != nil {
		return nil, fmt.Errorf("%s.%w", in.Container.Path, err)
	}
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       &runtimeapi.ImageSpec{Image: image.ID, UserSpecifiedImage: c.Image},
		Command:     command,
		Args:        args,
		WorkingDir:  c.WorkingDir,
		Envs:        variables(env),
		Mounts:      mounted,
		Labels:      containerLabels(pod, c),
		Annotations: containerAnnotations(in.Desired, c, in.Attempt),
		LogPath:     fmt.Sprintf("%s/%d.log", c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(&in),
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       Resources(pod, in.Container, in.Node),
			SecurityContext: secured,
		},
	}
	addDevices(config, in.Devices)
	return config, nil
}

// stopSignal returns the signal that stops the container. A default kubelet ignores the field; podctl honors it.
func stopSignal(in *ContainerInput) runtimeapi.Signal {
	l := in.Container.Lifecycle
	if l == nil || l.StopSignal == nil {
		return runtimeapi.Signal_RUNTIME_DEFAULT
	}
	return runtimeapi.Signal(runtimeapi.Signal_value[string(*l.StopSignal)])
}
