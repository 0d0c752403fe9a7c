package program

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/model"
)

// version is set by the release build.
var version = "devel"

// kubernetesVersion is the version of the kubelet whose behaviour podctl follows.
const kubernetesVersion = "1.36.3"

type versionOptions struct {
	client bool
	output string
}

// VersionDocument is the output of `version -o json`.
type VersionDocument struct {
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

// NewVersion returns the command `podctl version`.
func NewVersion(sess *session.Session) *cobra.Command {
	o := &versionOptions{}
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Show the versions of podctl and of the container runtime",
		Long: "Show the versions of podctl and of the container runtime, and the endpoint of the runtime." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  podctl version\n  podctl version --client -o json",
		Args:    flags.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runVersion(cmd, sess, o) },
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "Show only podctl's version, without a call to the runtime")
	cmd.Flags().VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runVersion(cmd *cobra.Command, sess *session.Session, o *versionOptions) error {
	doc := ClientVersion()
	var err error
	if !o.client {
		err = doc.AddRuntime(cmd.Context(), sess)
	}
	if terminal.IsDocument(o.output) {
		if werr := terminal.WriteDocument(sess.IO.Out, o.output, doc); werr != nil {
			return werr
		}
		return err
	}
	sess.IO.Print("podctl:   %s (%s, behaves as kubelet %s)", doc.Version, doc.Go, doc.Kubernetes)
	if doc.Runtime != "" {
		sess.IO.Print("runtime:  %s %s (CRI %s)", doc.Runtime, doc.RuntimeVer, doc.CRI)
		sess.IO.Print("endpoint: %s (%s)", doc.Endpoint, doc.Origin)
	}
	return err
}

// Version returns the version of podctl.
func Version() string { return version }

// ClientVersion returns the versions that are known without a runtime.
func ClientVersion() *VersionDocument {
	doc := &VersionDocument{
		APIVersion: model.APIVersion,
		Kind:       "Version",
		Version:    version,
		Kubernetes: kubernetesVersion,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		doc.Go = info.GoVersion
	}
	return doc
}

// AddRuntime asks the container runtime for its version. It does not wait for a runtime that starts.
func (doc *VersionDocument) AddRuntime(ctx context.Context, sess *session.Session) error {
	client, err := sess.Client()
	if err != nil {
		return err
	}
	client.Starting = nil
	reply, err := client.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return err
	}
	doc.Runtime, doc.RuntimeVer = reply.GetRuntimeName(), reply.GetRuntimeVersion()
	doc.CRI = reply.GetRuntimeApiVersion()
	doc.Endpoint, doc.Origin = client.Endpoint.Address, client.Endpoint.Origin
	return nil
}
