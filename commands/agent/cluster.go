package agent

import (
	"cmp"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/agent/daemon"
)

// clusterOptions make the machine a node of a cluster. Names and defaults are the kubelet's.
type clusterOptions struct {
	daemon.ClusterSettings

	ips           []string
	dns           []string
	taints        []string
	authorization string
	// offlineSecrets keeps Secrets on disk.
	offlineSecrets bool
	// flags are those that have no effect without --kubeconfig.
	flags *pflag.FlagSet
}

// The modes of authorization (kubelet: KubeletAuthorizationMode).
const (
	alwaysAllow = "AlwaysAllow"
	webhook     = "Webhook"
)

func (o *clusterOptions) addTo(set *pflag.FlagSet) {
	set.StringVar(&o.Kubeconfig, "kubeconfig", "", "Run as a node of the cluster that this file describes")
	o.flags = pflag.NewFlagSet("cluster", pflag.ContinueOnError)
	f := o.flags
	f.StringVar(&o.Bootstrap, "bootstrap-kubeconfig", "",
		"File with a token, with which the node requests its client certificate and writes --kubeconfig")
	f.BoolVar(&o.RotateCertificates, "rotate-certificates", false,
		"Replace the client certificate before it expires; on with --bootstrap-kubeconfig")
	f.StringVar(&o.NodeName, "node-name", "", "Name of the Node (default: the host name in lower case)")
	f.StringSliceVar(&o.ips, "node-ip", nil,
		"Addresses of the Node, at most one per IP family (default: the address of the default route)")
	f.StringSliceVar(&o.dns, "cluster-dns", nil, "Addresses of the cluster's DNS servers, for pods of the API server")
	f.StringVar(&o.ClusterDomain, "cluster-domain", "",
		"Domain of the cluster, such as cluster.local, for pods of the API server")
	f.BoolVar(&o.MirrorPods, "mirror-pods", true, "Show pods of other sources in the cluster, as mirror pods")
	f.StringSliceVar(&o.taints, "register-with-taints", nil,
		"Taints for a Node that does not exist yet, such as dedicated=db:NoSchedule")
	f.BoolVar(&o.offlineSecrets, "offline-secrets", true,
		"Keep copies of Secrets and tokens on disk, so that pods that need them start without the API server")
	f.DurationVar(&o.ShutdownGracePeriod, "shutdown-grace-period", 0,
		"Time for pods to stop at a shutdown of the machine, as with a kubelet: those of the API server fail "+
			"(0: --shutdown-grace applies, and they run again after the boot)")
	f.DurationVar(&o.ShutdownGracePeriodCriticalPods, "shutdown-grace-period-critical-pods", 0,
		"Part of --shutdown-grace-period for critical pods, which stop after all others")
	f.StringVar(&o.ProviderID, "provider-id", "",
		"ID that a cloud provider gives the machine, for a Node that does not exist yet")
	f.StringVar(&o.Server.Address, "address", "", "Address of the node's server (default: all addresses)")
	f.IntVar(&o.Server.Port, "port", config.NodePort, "Port of the node's server")
	f.StringVar(&o.Server.CertFile, "tls-cert-file", "",
		"Certificate of the node's server (default: a self-signed one)")
	f.StringVar(&o.Server.KeyFile, "tls-private-key-file", "", "Private key of --tls-cert-file")
	f.BoolVar(&o.Server.RotateCertificates, "rotate-server-certificates", false,
		"Request the certificate of the node's server from the API server, and replace it before it expires")
	f.StringVar(&o.Server.TLSMinVersion, "tls-min-version", "",
		"Lowest version of TLS of the node's server: VersionTLS12 (the default) or VersionTLS13; VersionTLS10 and "+
			"VersionTLS11 are insecure")
	f.StringSliceVar(&o.Server.TLSCipherSuites, "tls-cipher-suites", nil,
		"Cipher suites of the node's server for TLS below version 1.3, with the names of Go; without it, those of Go")
	f.BoolVar(&o.Server.SystemLogs, "enable-system-log-handler", false,
		"Serve the files in /var/log as /logs/ on the node's server")
	o.addAccessTo(f)
	set.AddFlagSet(f)
}

// addAccessTo adds the flags that decide which requests to the node's server are accepted.
func (o *clusterOptions) addAccessTo(f *pflag.FlagSet) {
	f.StringVar(&o.authorization, "authorization-mode", webhook,
		"Authorization of requests to the node's server: Webhook asks the API server, AlwaysAllow allows them")
	f.StringVar(&o.Server.ClientCAFile, "client-ca-file", "",
		"Accept clients of the node's server with a certificate of an authority in this file")
	f.BoolVar(&o.Server.Anonymous, "anonymous-auth", false,
		"Accept requests without credentials to the node's server (default: true with --authorization-mode "+
			"AlwaysAllow and without --client-ca-file)")
	f.DurationVar(&o.Server.TokenTTL, "authentication-token-webhook-cache-ttl", 2*time.Minute,
		"How long the API server's answer about a token is used")
	f.DurationVar(&o.Server.AllowTTL, "authorization-webhook-cache-authorized-ttl", 5*time.Minute,
		"How long a permission that the API server has granted is used")
	f.DurationVar(&o.Server.DenyTTL, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second,
		"How long a permission that the API server has denied stays denied")
	f.IntVar(&o.Server.ReadOnlyPort, "read-only-port", 0,
		"Port for lists of pods, health and metrics without access control, on 127.0.0.1 or --address; 0: none")
}

// setAccess checks the flags of access control. Unset flags must not refuse the clients that AlwaysAllow allows.
func (o *clusterOptions) setAccess(s *daemon.ServerSettings) error {
	switch {
	case o.authorization != alwaysAllow && o.authorization != webhook:
		return exit.Usagef("--authorization-mode %s: must be %s or %s", o.authorization, webhook, alwaysAllow)
	case s.ReadOnlyPort < 0 || s.ReadOnlyPort > 65535 || s.ReadOnlyPort == s.Port:
		return exit.Usagef("--read-only-port %d: must be between 0 and 65535, and not --port", s.ReadOnlyPort)
	case min(s.TokenTTL, s.AllowTTL, s.DenyTTL) < 0:
		return exit.Usagef("the durations of --authentication-… and --authorization-… must not be negative")
	}
	s.AlwaysAllow = o.authorization == alwaysAllow
	if s.AlwaysAllow && s.ClientCAFile == "" && !o.flags.Changed("anonymous-auth") {
		s.Anonymous = true
	}
	return nil
}

// settings checks the flags and returns the settings of the cluster. They are nil without --kubeconfig. labels are the
// labels of the node, which it checks.
func (o *clusterOptions) settings(labels map[string]string) (*daemon.ClusterSettings, error) {
	if o.Kubeconfig == "" {
		return nil, o.checkUnused()
	}
	s := o.ClusterSettings
	s.MemorySecrets = !o.offlineSecrets
	switch {
	case (s.Server.CertFile == "") != (s.Server.KeyFile == ""):
		return nil, exit.Usagef("--tls-cert-file and --tls-private-key-file belong together")
	case s.Server.CertFile != "" && s.Server.RotateCertificates:
		return nil, exit.Usagef("--tls-cert-file and --rotate-server-certificates exclude each other")
	case s.ShutdownGracePeriod < 0, s.ShutdownGracePeriodCriticalPods < 0,
		s.ShutdownGracePeriodCriticalPods > s.ShutdownGracePeriod:
		return nil, exit.Usagef("--shutdown-grace-period %s must be at least --shutdown-grace-period-critical-pods %s",
			s.ShutdownGracePeriod, s.ShutdownGracePeriodCriticalPods)
	case s.Server.Port < 1 || s.Server.Port > 65535:
		return nil, exit.Usagef("--port %d: must be between 1 and 65535", s.Server.Port)
	}
	if err := cmp.Or(o.checkServer(), o.setAccess(&s.Server), checkLabels(labels)); err != nil {
		return nil, err
	}
	if problems := validation.IsDNS1123Subdomain(s.NodeName); s.NodeName != "" && len(problems) > 0 {
		return nil, exit.Usagef("--node-name %s: %s", s.NodeName, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(s.ClusterDomain); s.ClusterDomain != "" && len(problems) > 0 {
		return nil, exit.Usagef("--cluster-domain %s: %s", s.ClusterDomain, problems[0])
	}
	var err error
	if s.NodeIPs, err = addresses(o.ips); err != nil {
		return nil, err
	}
	if s.ClusterDNS, err = servers(o.dns); err != nil {
		return nil, err
	}
	s.Taints, err = taints(o.taints)
	return &s, err
}

// checkUnused returns an error if a flag is set that has no effect without --kubeconfig.
func (o *clusterOptions) checkUnused() (err error) {
	o.flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() != f.DefValue {
			err = errors.Join(err, exit.Usagef("--%s needs --kubeconfig", f.Name))
		}
	})
	return err
}

// addresses parses the addresses of the node.
func addresses(texts []string) (all []netip.Addr, err error) {
	for _, text := range texts {
		ip, parseErr := netip.ParseAddr(strings.TrimSpace(text))
		switch {
		case parseErr != nil:
			return nil, exit.Usagef("--node-ip %s: it is not an IP address", text)
		case ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback() || ip.IsLinkLocalUnicast():
			return nil, exit.Usagef("--node-ip %s: other machines cannot reach it", text)
		}
		for _, other := range all {
			if other.Is4() == ip.Is4() {
				return nil, exit.Usagef("--node-ip: %s and %s are of the same family", other, ip)
			}
		}
		all = append(all, ip)
	}
	return all, nil
}

// servers parses the addresses of the cluster's DNS servers. They may be link-local, as those of a cache on each node.
func servers(texts []string) (all []netip.Addr, err error) {
	for _, text := range texts {
		ip, parseErr := netip.ParseAddr(strings.TrimSpace(text))
		if parseErr != nil || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() {
			return nil, exit.Usagef("--cluster-dns %s: it is not the IP address of a server", text)
		}
		all = append(all, ip.Unmap())
	}
	return all, nil
}

// taints parses taints of the form KEY=VALUE:EFFECT or KEY:EFFECT.
func taints(texts []string) (all []v1.Taint, err error) {
	for _, text := range texts {
		pair, effect, found := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		taint := v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		switch taint.Effect {
		case v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
		default:
			problems = append(problems, "the effect must be NoSchedule, PreferNoSchedule or NoExecute")
		}
		if !found || len(problems) > 0 {
			return nil, exit.Usagef("--register-with-taints %s: must be KEY=VALUE:EFFECT: %s",
				text, strings.Join(problems, "; "))
		}
		all = append(all, taint)
	}
	return all, nil
}
