// Package devicestest is for tests only: a device plugin, as vendors write them.
//
// It serves the kubelet's API v1beta1 on a socket beside that of the agent, and registers there.
package devicestest

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Plugin is a device plugin. Its fields are set before it starts.
type Plugin struct {
	pluginapi.UnimplementedDevicePluginServer

	Resource string
	Options  *pluginapi.DevicePluginOptions
	// Fail returns the error of a call by its name; it may be nil.
	Fail func(call string) error
	// Answer returns what the plugin adds to a container with these devices.
	Answer func(ids []string) *pluginapi.ContainerAllocateResponse
	// Prefer returns the devices that the plugin prefers.
	Prefer func(available []string) []string

	server *grpc.Server
	// changed is closed and replaced when the devices change.
	mu      sync.Mutex
	devices []*pluginapi.Device
	changed chan struct{}
	calls   []string
}

// Start serves the plugin in the directory of the socket of an agent.
func (p *Plugin) Start(ctx context.Context, socket string, devices ...*pluginapi.Device) error {
	p.devices, p.changed = devices, make(chan struct{})
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(filepath.Dir(socket), p.endpoint()))
	if err != nil {
		return err
	}
	p.server = grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(p.server, p)
	go func() { _ = p.server.Serve(l) }()
	return p.Register(ctx, socket)
}

// Register registers the plugin, for example with an agent that has restarted.
func (p *Plugin) Register(ctx context.Context, socket string) error {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: p.endpoint(), ResourceName: p.Resource,
	})
	return err
}

// endpoint returns the name of the plugin's socket.
func (p *Plugin) endpoint() string { return filepath.Base(p.Resource) + ".sock" }

// Stop ends the plugin.
func (p *Plugin) Stop() { p.server.Stop() }

// Set replaces the devices.
func (p *Plugin) Set(devices ...*pluginapi.Device) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices = devices
	close(p.changed)
	p.changed = make(chan struct{})
}

// Calls returns the calls so far.
func (p *Plugin) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Healthy returns a healthy device.
func Healthy(id string) *pluginapi.Device {
	return &pluginapi.Device{ID: id, Health: pluginapi.Healthy}
}

// Sick returns an unhealthy device.
func Sick(id string) *pluginapi.Device { return &pluginapi.Device{ID: id, Health: pluginapi.Unhealthy} }

// note notes a call, and returns its error.
func (p *Plugin) note(call string) error {
	p.mu.Lock()
	p.calls = append(p.calls, call)
	p.mu.Unlock()
	if p.Fail == nil {
		return nil
	}
	return p.Fail(call)
}

// GetDevicePluginOptions returns the options.
func (p *Plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	if err := p.note("GetDevicePluginOptions"); err != nil {
		return nil, err
	}
	if p.Options == nil {
		return &pluginapi.DevicePluginOptions{}, nil
	}
	return p.Options, nil
}

// ListAndWatch sends the devices, and again when they change.
func (p *Plugin) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	if err := p.note("ListAndWatch"); err != nil {
		return err
	}
	for {
		p.mu.Lock()
		devices, changed := p.devices, p.changed
		p.mu.Unlock()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// GetPreferredAllocation returns the preferred devices.
func (p *Plugin) GetPreferredAllocation(
	_ context.Context, r *pluginapi.PreferredAllocationRequest,
) (*pluginapi.PreferredAllocationResponse, error) {
	if err := p.note("GetPreferredAllocation"); err != nil {
		return nil, err
	}
	return &pluginapi.PreferredAllocationResponse{ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{
		{DeviceIDs: p.Prefer(r.GetContainerRequests()[0].GetAvailableDeviceIDs())},
	}}, nil
}

// Allocate allocates devices.
func (p *Plugin) Allocate(_ context.Context, r *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	if err := p.note("Allocate"); err != nil {
		return nil, err
	}
	answer := &pluginapi.ContainerAllocateResponse{}
	if p.Answer != nil {
		answer = p.Answer(r.GetContainerRequests()[0].GetDevicesIds())
	}
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{answer}}, nil
}

// PreStartContainer prepares devices for a start.
func (p *Plugin) PreStartContainer(
	context.Context, *pluginapi.PreStartContainerRequest,
) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, p.note("PreStartContainer")
}
