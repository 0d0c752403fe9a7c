package node

import (
	"context"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/cluster/podresources"
	"github.com/podctl/podctl/runtime/kubeletapi"
	"github.com/podctl/podctl/runtime/state"
)

// servePodResources serves the PodResources API until the context ends. Only root can use its socket, as with a
// kubelet. Without the API, pods run as well, so a failure is only logged.
func servePodResources(ctx context.Context, n *node, a *agent.Agent) {
	name := func(d *podspec.Desired) string { return kubeletapi.APIName(d, n.NodeName) }
	l, err := api.Listen(ctx, state.PodResourcesSocket(n.member.Layout))
	if err == nil {
		err = podresources.New(a, n.member.Devices, name).Serve(ctx, l, n.metrics.PodResourcesServed)
	}
	if err != nil {
		n.member.Log.Error("the PodResources API cannot be served", "error", err.Error())
	}
}
