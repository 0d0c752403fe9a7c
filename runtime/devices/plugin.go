package devices

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// preStartTimeout is how long a plugin may take before each start of a container, as the API defines it.
const preStartTimeout = pluginapi.KubeletPreStartContainerRPCTimeoutInSecs * time.Second

// connectTimeout is how long a plugin that registers may take to serve its socket (kubelet: dial).
const connectTimeout = 10 * time.Second

// plugin is a connection to a device plugin.
type plugin struct {
	conn    *grpc.ClientConn
	client  pluginapi.DevicePluginClient
	options *pluginapi.DevicePluginOptions
}

// connect connects to a plugin and reads its options (kubelet: Connect, PluginConnected). An answer has at most 4 MiB,
// the limit of gRPC.
func connect(ctx context.Context, socket string, options ...grpc.DialOption) (*plugin, error) {
	conn, err := grpc.NewClient("unix:"+socket, append(options,
		grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, fmt.Errorf("failed to connect to the device plugin: %w", err)
	}
	if err = await(ctx, conn); err != nil {
		err = fmt.Errorf("no connection to the device plugin's socket %s: %w", socket, err)
		return nil, errors.Join(err, conn.Close())
	}
	p := &plugin{conn: conn, client: pluginapi.NewDevicePluginClient(conn)}
	if p.options, err = p.client.GetDevicePluginOptions(ctx, &pluginapi.Empty{}); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to get device plugin options: %w", err), conn.Close())
	}
	return p, nil
}

// await waits for a connection. Some plugins register before they serve their socket.
func await(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		conn.Connect()
		if !conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
	return nil
}

// watch passes on what the plugin reports, until the connection ends.
func (p *plugin) watch(ctx context.Context, report func(*pluginapi.ListAndWatchResponse)) error {
	stream, err := p.client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return err
	}
	for {
		listed, err := stream.Recv()
		if err != nil {
			return err
		}
		report(listed)
	}
}

// allocate allocates devices for a container.
func (p *plugin) allocate(ctx context.Context, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	response, err := p.client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil {
		return nil, err
	}
	if len(response.GetContainerResponses()) == 0 {
		return nil, fmt.Errorf("no containers return in allocation response %v", response)
	}
	return response.GetContainerResponses()[0], nil
}

// preStart prepares devices for a start of a container, if the plugin requires it.
func (p *plugin) preStart(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, preStartTimeout)
	defer cancel()
	_, err := p.client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: ids})
	if err != nil {
		return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
	}
	return nil
}

// prefer returns the devices that the plugin prefers; nil if it has no preference.
func (p *plugin) prefer(ctx context.Context, available, must []string, size int64) ([]string, error) {
	if !p.options.GetGetPreferredAllocationAvailable() {
		return nil, nil
	}
	response, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: int32(size),
		}},
	})
	if err != nil || len(response.GetContainerResponses()) == 0 {
		return nil, err
	}
	return response.GetContainerResponses()[0].GetDeviceIDs(), nil
}
