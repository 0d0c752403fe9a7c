package daemon

import (
	"context"
	"os"
	"path/filepath"

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
			if d.cluster != nil {
				d.cluster.HandleFacts()
			}
			d.WakeUsers(ctx, resource)
		},
		Now: d.Now,
		Log: d.Log,
	})
}

// Devices returns the manager of devices.
func (d *daemon) Devices() model.DeviceManager { return d.devices }

// serveDevices serves the registration of device plugins until the context ends. Only root can use the socket, as with
// a kubelet. The sockets of an earlier agent are removed, so that plugins notice the new one.
func (d *daemon) serveDevices(ctx context.Context) error {
	socket := state.DevicesSocket(d.Layout)
	dir := filepath.Dir(socket)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := devices.RemoveSockets(dir); err != nil {
		return err
	}
	l, err := api.Listen(ctx, socket)
	if err != nil {
		return err
	}
	return d.devices.Serve(ctx, l)
}
