package node

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/eviction"
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

// driverTimeout is how long /configz waits for the runtime.
const driverTimeout = 2 * time.Second

// configuration returns the configuration of the node in the terms of a kubelet, for programs that read /configz. The
// runtime knows the cgroup driver. If it does not answer soon, the last known driver is shown, or cgroupfs before its
// first answer.
func (n *node) configuration(ctx context.Context) *kubeletconfig.KubeletConfiguration {
	client, host := n.member.Engine.Client, n.member.Engine.Host
	asking, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	_, _ = host.RuntimeFacts(asking)
	hardware := host.Node()
	c := &kubeletconfig.KubeletConfiguration{
		ContainerRuntimeEndpoint: client.Endpoint.Address,
		ImageServiceEndpoint:     client.ImageEndpoint.Address,
		Address:                  n.Server.Address,
		Port:                     int32(n.Server.Port), // it was checked
		CgroupsPerQOS:            new(true),
		CgroupDriver:             "cgroupfs",
		CgroupRoot:               cmp.Or(hardware.CgroupRoot, "/"),
		PodLogsDir:               n.member.Layout.LogRoot,
		SystemReserved:           map[string]string{},
		ProviderID:               n.ProviderID,
		ClusterDNS:               texts(n.ClusterDNS),
		ClusterDomain:            n.ClusterDomain,
		RegisterNode:             new(true),
	}
	if hardware.SystemdCgroup {
		c.CgroupDriver = "systemd"
	}
	c.ShutdownGracePeriod.Duration = n.ShutdownGracePeriod
	c.ShutdownGracePeriodCriticalPods.Duration = n.ShutdownGracePeriodCriticalPods
	setAccess(c, &n.Server)
	setEviction(c, n.member.Eviction)
	c.MaxPods = int32(n.Resources.MaxPods) // a number of pods
	for name, q := range n.Resources.Reserved {
		c.SystemReserved[string(name)] = q.String()
	}
	for _, path := range n.member.Sources {
		if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.IsDir() {
			c.StaticPodPath = path
			break
		}
	}
	return c
}

// setEviction adds the thresholds of eviction.
func setEviction(c *kubeletconfig.KubeletConfiguration, s eviction.Config) {
	c.EvictionHard, c.EvictionSoft = map[string]string{}, map[string]string{}
	c.EvictionSoftGracePeriod, c.EvictionMinimumReclaim = map[string]string{}, map[string]string{}
	c.EvictionPressureTransitionPeriod.Duration = s.Transition
	c.EvictionMaxPodGracePeriod = int32(s.MaxGrace) // it was checked
	for i := range s.Thresholds {
		t, signal := &s.Thresholds[i], string(s.Thresholds[i].Signal)
		if t.Grace == 0 {
			c.EvictionHard[signal] = t.Value()
		} else {
			c.EvictionSoft[signal], c.EvictionSoftGracePeriod[signal] = t.Value(), t.Grace.String()
		}
		if t.MinReclaim != (admission.Share{}) {
			c.EvictionMinimumReclaim[signal] = t.MinReclaim.Value()
		}
	}
}

// setAccess adds the settings of access control.
func setAccess(c *kubeletconfig.KubeletConfiguration, s *daemon.ServerSettings) {
	c.ReadOnlyPort = int32(s.ReadOnlyPort) // it was checked
	c.TLSMinVersion, c.TLSCipherSuites = s.TLSMinVersion, s.TLSCipherSuites
	c.EnableSystemLogHandler = new(s.SystemLogs)
	c.Authentication.X509.ClientCAFile = s.ClientCAFile
	c.Authentication.Anonymous.Enabled = new(s.Anonymous)
	c.Authentication.Webhook.Enabled = new(true)
	c.Authentication.Webhook.CacheTTL.Duration = s.TokenTTL
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	if s.AlwaysAllow {
		c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	}
	c.Authorization.Webhook.CacheAuthorizedTTL.Duration = s.AllowTTL
	c.Authorization.Webhook.CacheUnauthorizedTTL.Duration = s.DenyTTL
}
