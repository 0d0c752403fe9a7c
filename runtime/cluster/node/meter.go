package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/kubeletapi"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/stats"
)

// newMeter returns what measures the node and its pods for the node's server.
func newMeter(n *node, a *agent.Agent) *stats.Meter {
	host := n.member.Engine.Host
	files := eviction.NewMeter(n.member.Engine.Client, n.member.Layout, host.Node, nil)
	return stats.New(stats.Settings{
		Runtime: n.member.Engine.Client, Groups: cgroup.Machine{}, Node: host.Node,
		RuntimeProcess: n.member.Engine.Client.Endpoint.Server,
		NodeName:       n.NodeName, Booted: machine.Booted(n.member.Now()), Started: n.member.Now(), Pods: a.Shown,
		Identity: machine.IdentityOf("/"),
		APIName:  func(d *podspec.Desired) string { return kubeletapi.APIName(d, n.NodeName) },
		Disks: func(ctx context.Context) stats.Disks {
			return disksOf(ctx, n.member.Layout.Root, n.member.Engine.Client.Images)
		},
		Files: func(ctx context.Context, pod *v1.Pod, containers []string) stats.Files {
			used, _ := files.FileUsage(ctx, pod, containers) // What cannot be read is left out.
			return filesOf(used)
		},
		Now: n.member.Now,
	})
}

// filesOf converts the usage of a pod's files. Volumes that do not exist are left out.
func filesOf(used *eviction.Usage) stats.Files {
	f := stats.Files{Logs: map[string]stats.Used{}, Others: usedOf(used.Hosts)}
	for i := range used.Volumes {
		v := &used.Volumes[i]
		if on := stats.FileSystemOf(v.Path); on.Bytes > 0 {
			f.Volumes = append(f.Volumes, stats.VolumeFiles{Name: v.Name, On: on, Used: usedOf(v.Disk), Local: v.Local})
		}
	}
	for i := range used.Containers {
		if c := &used.Containers[i]; c.Logs != nil {
			f.Logs[c.Name] = usedOf(*c.Logs)
		}
	}
	return f
}

func usedOf(d eviction.Disk) stats.Used {
	return stats.Used{Bytes: uint64(max(d.Bytes, 0)), Inodes: uint64(max(d.Inodes, 0))} // not negative
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
	if all := reply.GetContainerFilesystems(); len(all) > 0 &&
		all[0].GetFsId().GetMountpoint() != used.GetFsId().GetMountpoint() {
		d.Containers = stats.FileSystemOf(all[0].GetFsId().GetMountpoint())
		d.ContainerBytes, d.ContainerInodes = all[0].GetUsedBytes().GetValue(), all[0].GetInodesUsed().GetValue()
	}
	return d
}
