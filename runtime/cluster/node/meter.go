package node

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/kubeletapi"
	"github.com/podctl/podctl/runtime/stats"
)

// newMeter returns what measures the node and its pods for the node's server.
func newMeter(n *node, a *agent.Agent) *stats.Meter {
	return stats.New(stats.Settings{
		Runtime: n.member.Engine.Client, Groups: cgroup.Machine{}, Node: n.member.Engine.Host.Node,
		NodeName: n.NodeName, Started: n.member.Now(), Pods: a.Shown,
		APIName: func(d *podspec.Desired) string { return kubeletapi.APIName(d, n.NodeName) },
		Disks: func(ctx context.Context) stats.Disks {
			return disksOf(ctx, n.member.Layout.Root, n.member.Engine.Client.Images)
		},
		Now: n.member.Now,
	})
}

// disksOf measures the file systems of the node. What cannot be read is left out.
func disksOf(ctx context.Context, root string, images runtimeapi.ImageServiceClient) stats.Disks {
	d := stats.Disks{State: stats.FileSystemOf(root)}
	reply, err := images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil || len(reply.GetImageFilesystems()) == 0 {
		return d
	}
	used := reply.GetImageFilesystems()[0]
	d.Images = stats.FileSystemOf(used.GetFsId().GetMountpoint())
	d.ImageBytes, d.ImageInodes = used.GetUsedBytes().GetValue(), used.GetInodesUsed().GetValue()
	return d
}
