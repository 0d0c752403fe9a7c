package config

import (
	"cmp"
	"slices"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/node"
)

// EndpointSources are the places an endpoint can come from. One of a configuration file comes
// after the environment, as every setting does.
func (f *Flags) EndpointSources(getenv func(string) string) cri.EndpointSources {
	set := f.Settings[EndpointFlag]
	given := []cri.Endpoint{
		{Address: f.RuntimeEndpoint, Origin: cmp.Or(set.Origin, "--"+EndpointFlag)},
		{Address: getenv("CONTAINER_RUNTIME_ENDPOINT"), Origin: "CONTAINER_RUNTIME_ENDPOINT"},
	}
	if set.FromFile {
		slices.Reverse(given)
	}
	return cri.EndpointSources{
		Given: given, NodeSocket: node.Socket(f.Layout().NodeDir()), CrictlConfig: "/etc/crictl.yaml", WellKnown: cri.WellKnownSockets(),
	}
}
