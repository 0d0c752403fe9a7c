package observe

import (
	"context"
	"errors"

	"github.com/podctl/podctl/runtime/model"
)

// errNoDevices is why a process without a manager of devices has none.
var errNoDevices = errors.New("the agent gives devices to containers; start it: podctl agent")

// observeDevices returns the devices that the containers of a pod have or can get; nil if they need none. Without an
// answer, the containers wait.
func observeDevices(ctx context.Context, manager model.DeviceManager, request model.DeviceRequest) *model.Devices {
	if len(request.Containers) == 0 {
		return nil
	}
	err := errNoDevices
	if manager != nil {
		var chosen model.Devices
		if chosen, err = manager.ChooseDevices(ctx, &request); err == nil {
			return &chosen
		}
	}
	unknown := &model.Devices{Faults: map[string]model.DeviceFault{}}
	for i := range request.Containers {
		need := &request.Containers[i]
		name := need.Resources()[0]
		unknown.Faults[need.Container] = model.DeviceFault{Resource: name, Message: name + ": " + err.Error()}
	}
	return unknown
}
