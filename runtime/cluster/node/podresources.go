package node

import (
	"context"
	"os"
	"path/filepath"

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
	socket := state.PodResourcesSocket(n.member.Layout)
	err := os.MkdirAll(filepath.Dir(socket), 0o750)
	if err == nil {
		name := func(d *podspec.Desired) string { return kubeletapi.APIName(d, n.NodeName) }
		if l, failed := api.Listen(ctx, socket); failed == nil {
			err = podresources.New(a, n.member.Devices, name).Serve(ctx, l)
		} else {
			err = failed
		}
	}
	if err != nil {
		n.member.Log.Error("the PodResources API cannot be served", "error", err.Error())
	}
}
