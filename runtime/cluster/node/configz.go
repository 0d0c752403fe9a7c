package node

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/eviction"
)

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
	c := fixedConfiguration()
	c.ContainerRuntimeEndpoint, c.ImageServiceEndpoint = client.Endpoint.Address, client.ImageEndpoint.Address
	c.CgroupDriver, c.CgroupRoot = "cgroupfs", cmp.Or(hardware.CgroupRoot, "/")
	c.ProviderID, c.RegisterWithTaints = n.ProviderID, n.Taints
	c.RotateCertificates = n.RotateCertificates
	c.ClusterDNS, c.ClusterDomain = texts(n.ClusterDNS), n.ClusterDomain
	if hardware.SystemdCgroup {
		c.CgroupDriver = "systemd"
	}
	c.ShutdownGracePeriod.Duration = n.ShutdownGracePeriod
	c.ShutdownGracePeriodCriticalPods.Duration = n.ShutdownGracePeriodCriticalPods
	setServer(c, &n.Server)
	setEviction(c, n.member.Eviction)
	setHousekeeping(c, n.member)
	c.PodPidsLimit, c.SeccompDefault = new(cmp.Or(hardware.PodPIDs, -1)), new(hardware.SeccompDefault)
	images := host.ImagePolicy()
	c.ImagePullCredentialsVerificationPolicy = kubeletconfig.ImagePullCredentialsVerificationPolicy(images.Effective())
	c.PreloadedImagesVerificationAllowlist = images.Patterns()
	c.AllowedUnsafeSysctls = n.member.Resources.UnsafeSysctls
	c.MaxPods = int32(n.member.Resources.MaxPods) // a number of pods
	c.EnforceNodeAllocatable = []string{"none"}
	if n.member.Resources.Enforce {
		c.EnforceNodeAllocatable = []string{"pods"}
	}
	c.SystemReserved = map[string]string{}
	for name, q := range n.member.Resources.Reserved {
		c.SystemReserved[string(name)] = q.String()
	}
	for _, source := range n.member.Sources {
		path := source.Name()
		if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.IsDir() {
			c.StaticPodPath = path
			break
		}
	}
	return c
}

// fixedConfiguration has the values that no setting of podctl changes. Programs read a missing field as zero or false,
// so a field is missing only if podctl has nothing like it.
func fixedConfiguration() *kubeletconfig.KubeletConfiguration {
	c := &kubeletconfig.KubeletConfiguration{
		EnableServer:                              new(true),
		EnableDebuggingHandlers:                   new(true),
		EnableControllerAttachDetach:              new(true),
		RegisterNode:                              new(true),
		ConfigMapAndSecretChangeDetectionStrategy: kubeletconfig.WatchChangeDetectionStrategy,
		NodeStatusMaxImages:                       new(int32(50)),
		NodeLeaseDurationSeconds:                  40,
		EventRecordQPS:                            new(int32(50)),
		EventBurst:                                100,
		ContainerLogMaxWorkers:                    new(int32(1)),
		CgroupsPerQOS:                             new(true),
		CPUCFSQuota:                               new(true),
		CPUCFSQuotaPeriod:                         &metav1.Duration{Duration: 100 * time.Millisecond},
		CPUManagerPolicy:                          "none",
		MemoryManagerPolicy:                       kubeletconfig.NoneMemoryManagerPolicy,
		TopologyManagerPolicy:                     kubeletconfig.NoneTopologyManagerPolicy,
		TopologyManagerScope:                      kubeletconfig.ContainerTopologyManagerScope,
		LocalStorageCapacityIsolation:             new(true),
		FailSwapOn:                                new(false),
		FailCgroupV1:                              new(false),
		MakeIPTablesUtilChains:                    new(false),
		SingleProcessOOMKill:                      new(false),
	}
	c.MemorySwap.SwapBehavior = "NoSwap"
	c.NodeStatusUpdateFrequency.Duration = 10 * time.Second
	c.NodeStatusReportFrequency.Duration = 5 * time.Minute
	c.ContainerLogMonitorInterval = &metav1.Duration{Duration: 10 * time.Second}
	c.StreamingConnectionIdleTimeout.Duration = 4 * time.Hour
	c.VolumeStatsAggPeriod.Duration = time.Minute
	return c
}

// setHousekeeping adds the limits of logs and images, and the port of /healthz.
func setHousekeeping(c *kubeletconfig.KubeletConfiguration, m *daemon.Member) {
	c.PodLogsDir = m.Layout.LogRoot
	c.ContainerLogMaxSize = resource.NewQuantity(m.Logs.Size, resource.BinarySI).String()
	c.ContainerLogMaxFiles = new(int32(m.Logs.Files)) // a number of files
	c.ImageGCHighThresholdPercent, c.ImageGCLowThresholdPercent = new(int32(m.Images.High)), new(int32(m.Images.Low))
	c.ImageMinimumGCAge.Duration, c.ImageMaximumGCAge.Duration = m.Images.MinAge, m.Images.MaxAge
	c.SerializeImagePulls = new(m.Pulls == 1)
	if m.Pulls > 1 {
		c.MaxParallelImagePulls = new(int32(m.Pulls)) // a number of pulls
	}
	c.HealthzPort = new(int32(0))
	if m.Listen == nil {
		return
	}
	if port, err := strconv.ParseUint(m.Listen.Port, 10, 16); err == nil {
		c.HealthzPort, c.HealthzBindAddress = new(int32(port)), cmp.Or(m.Listen.Host, "127.0.0.1")
	}
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

// setServer adds the settings of the node's server and of its access control.
func setServer(c *kubeletconfig.KubeletConfiguration, s *daemon.ServerSettings) {
	c.Address, c.Port, c.ReadOnlyPort = s.Address, int32(s.Port), int32(s.ReadOnlyPort) // they were checked
	c.TLSCertFile, c.TLSPrivateKeyFile, c.ServerTLSBootstrap = s.CertFile, s.KeyFile, s.RotateCertificates
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
