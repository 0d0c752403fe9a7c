package node

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/membership"
	"github.com/podctl/podctl/runtime/kubeletapi"
)

// completeSettings sets the name and the address of the node if the user did not.
func completeSettings(s *daemon.ClusterSettings) error {
	s.NodeName = cmp.Or(s.NodeName, hostName())
	if problems := validation.IsDNS1123Subdomain(s.NodeName); len(problems) > 0 {
		return fmt.Errorf("the name %q cannot be the name of a Node: %s: set --node-name", s.NodeName, problems[0])
	}
	if len(s.NodeIPs) > 0 {
		return nil
	}
	ip, err := utilnet.ChooseHostInterface()
	if err != nil {
		return fmt.Errorf("finding the address of the default route: %w: set --node-ip", err)
	}
	address, ok := netip.AddrFromSlice(ip)
	if !ok {
		return fmt.Errorf("the default route has the address %s: set --node-ip", ip)
	}
	s.NodeIPs = []netip.Addr{address.Unmap()}
	return nil
}

// connectionOf completes the settings of the cluster, and returns those of the connection to its API server.
func connectionOf(d *daemon.Settings) (*daemon.ClusterSettings, cluster.Settings, error) {
	s := *d.Cluster
	if err := completeSettings(&s); err != nil {
		return nil, cluster.Settings{}, err
	}
	registered, err := membership.ReadFor(d.Layout.Root, s.NodeName)
	return &s, cluster.Settings{
		Kubeconfig: s.Kubeconfig, Bootstrap: s.Bootstrap, Rotate: s.RotateCertificates,
		Node: s.NodeName, Dir: kubeletapi.CertificateDir(d.Layout.Root), Joined: registered != nil,
		UserAgent: "podctl-node/" + d.Version, Now: d.Now, Log: d.Log,
	}, err
}

// Check checks the settings, the kubeconfig and the files of the node's server. It changes nothing.
func Check(d *daemon.Settings) error {
	s, connection, err := connectionOf(d)
	if err != nil {
		return err
	}
	connection.Log = slog.New(slog.DiscardHandler)
	if err = cluster.Check(connection); err != nil {
		return err
	}
	if server := &s.Server; server.CertFile != "" {
		if _, err = kubeletapi.FromFiles(server.CertFile, server.KeyFile, connection.Log); err != nil {
			return err
		}
	}
	_, err = accessOf(s, nil, connection.Log)
	return err
}
