package daemon

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/devices"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// newDevices returns the manager of devices.
func (d *daemon) newDevices() *devices.Manager {
	return devices.New(devices.Settings{
		Dir:   filepath.Dir(state.DevicesSocket(d.Layout)),
		File:  state.Devices(d.Layout),
		Users: func() ([]model.Admitted, error) { return d.engine.Observer.Others(model.PodRef{}) },
		Changed: func(ctx context.Context, resource string) {
			if d.joined != nil {
				d.joined.HandleFacts()
			}
			d.agent.WakeUsers(ctx, resource)
		},
		Now: d.Now,
		Log: d.Log,
	})
}

// keepDevices is a listener that frees devices that containers do not request any more, once the containers have
// stopped.
func (d *daemon) keepDevices(ctx context.Context, e *agent.Event) {
	switch {
	case e.Kind == agent.Ended:
		d.devices.Keep(ctx, &model.DeviceRequest{Pod: e.Pod.UID}, func(string) bool { return false })
	case e.Kind == agent.Passed && e.Outcome != nil && e.Outcome.Desired != nil:
		p, request := e.Outcome.Plan, model.DeviceRequestOf(e.Outcome.Desired.Pod)
		upToDate := len(p.Steps) == 0 && len(p.Holds) == 0
		d.devices.Keep(ctx, &request, func(container string) bool {
			return !upToDate && slices.ContainsFunc(e.Outcome.Input.Observed.Containers, func(c model.Container) bool {
				return c.Name == container && c.State == model.Running
			})
		})
	}
}

// serveDevices serves the registration of device plugins until the context ends. Only root can use the socket, as with
// a kubelet. The sockets of an earlier agent are removed, so that plugins notice the new one.
func (d *daemon) serveDevices(ctx context.Context) error {
	socket := state.DevicesSocket(d.Layout)
	if err := devices.RemoveSockets(filepath.Dir(socket)); err != nil {
		return err
	}
	l, err := api.Listen(ctx, socket)
	if err != nil {
		return err
	}
	return d.devices.Serve(ctx, l)
}
