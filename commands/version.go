package commands

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// version is set by the build; a build without it says so.
var version = "devel"

// kubernetesVersion is the kubelet whose behaviour podctl has.
const kubernetesVersion = "1.36.3"

type versionOptions struct {
	client bool
	output string
}

// versionDocument is `version -o json`.
type versionDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Runtime    string `json:"runtime,omitempty"`
	RuntimeVer string `json:"runtimeVersion,omitempty"`
	CRI        string `json:"cri,omitempty"`
	Endpoint   string `json:"endpoint,omitempty"`
	Origin     string `json:"endpointOrigin,omitempty"`
}

func newVersion(g *globals) *cobra.Command {
	o := &versionOptions{}
	cmd := &cobra.Command{
		Use:     "version [flags]",
		Short:   "Show the versions of podctl and of the runtime",
		Long:    "Show the versions of podctl and of the runtime, and which runtime it is." + exitCodes("0 done", "1 error"),
		Example: "  podctl version\n  podctl version --client -o json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runVersion(cmd, g, o) },
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "Only podctl's own version; no runtime is asked")
	cmd.Flags().VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runVersion(cmd *cobra.Command, g *globals, o *versionOptions) error {
	doc := clientVersion()
	var err error
	if !o.client {
		err = g.askRuntime(cmd.Context(), &doc)
	}
	if isDocument(o.output) {
		if werr := writeDocument(g.env.Out, o.output, doc); werr != nil {
			return werr
		}
		return err
	}
	g.print("podctl:   %s (%s, behaves as kubelet %s)", doc.Version, doc.Go, doc.Kubernetes)
	if doc.Runtime != "" {
		g.print("runtime:  %s %s (CRI %s)", doc.Runtime, doc.RuntimeVer, doc.CRI)
		g.print("endpoint: %s (%s)", doc.Endpoint, doc.Origin)
	}
	return err
}

// clientVersion is what podctl says of itself.
func clientVersion() versionDocument {
	doc := versionDocument{APIVersion: model.APIVersion, Kind: "Version", Version: version, Kubernetes: kubernetesVersion}
	if info, ok := debug.ReadBuildInfo(); ok {
		doc.Go = info.GoVersion
	}
	return doc
}

func (g *globals) askRuntime(ctx context.Context, doc *versionDocument) error {
	if _, err := g.connect(); err != nil {
		return err
	}
	reply, err := g.client.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return err
	}
	doc.Runtime, doc.RuntimeVer, doc.CRI = reply.GetRuntimeName(), reply.GetRuntimeVersion(), reply.GetRuntimeApiVersion()
	doc.Endpoint, doc.Origin = g.client.Endpoint.Address, g.client.Endpoint.Origin
	return nil
}
