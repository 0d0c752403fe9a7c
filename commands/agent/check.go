package agent

import (
	"cmp"
	"crypto/tls"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/commands/exit"
)

// Check returns why an agent that is a node does not start with these values of its flags. Other flags are not checked.
// The values of single flags must be valid.
func Check(values map[string]string) error {
	o, set := &agentOptions{}, pflag.NewFlagSet("agent", pflag.ContinueOnError)
	o.register(set)
	for name, value := range values {
		if flag := set.Lookup(name); flag != nil {
			if err := set.Set(name, value); err != nil {
				return err
			}
		}
	}
	o.clusterFlags.Kubeconfig = cmp.Or(o.clusterFlags.Kubeconfig, "a file")
	var err error
	if o.Cluster, err = o.clusterFlags.settings(o.admissionFlags.Labels); err != nil {
		return err
	}
	return o.checkFlags()
}

// checkFlags checks the flags and sets the settings that follow from them alone.
func (o *agentOptions) checkFlags() (err error) {
	if err = o.checkHousekeeping(); err != nil {
		return err
	}
	if o.Eviction, err = o.evictionFlags.config(); err != nil {
		return err
	}
	if err = o.limitFlags.check(); err != nil {
		return err
	}
	o.admissionFlags.Enforce = o.limitFlags.enforces(o.Cluster != nil)
	switch {
	case o.StopAtEnd && o.ShutdownGrace <= 0:
		return exit.Usagef("--stop-pods needs a --shutdown-grace greater than 0")
	case o.Pulls < 0:
		return exit.Usagef("--max-parallel-pulls %d: must not be negative", o.Pulls)
	case o.urlInterval <= 0:
		return exit.Usagef("--url-interval %s: must be greater than 0", o.urlInterval)
	case o.Cluster != nil:
		err = o.setResources()
	}
	return err
}

// checkServer checks where and how the node's server listens, as a kubelet does at its start.
func (o *clusterOptions) checkServer() error {
	server := &o.Server
	if _, err := netip.ParseAddr(server.Address); err != nil && server.Address != "" {
		return exit.Usagef("--address %s: it is not an IP address", server.Address)
	}
	switch server.TLSMinVersion {
	case "", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13":
	default:
		return exit.Usagef("--tls-min-version %s: must be a version such as VersionTLS12", server.TLSMinVersion)
	}
	known := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
	for _, name := range server.TLSCipherSuites {
		has := func(s *tls.CipherSuite) bool { return s.Name == name || isOldName(name, s.Name) }
		if !slices.ContainsFunc(known, has) {
			return exit.Usagef("--tls-cipher-suites: %s is not a name of a cipher suite", name)
		}
	}
	return nil
}

// isOldName reports whether a cipher suite had this name before, which a kubelet still accepts.
func isOldName(name, today string) bool {
	return strings.HasSuffix(name, "_CHACHA20_POLY1305") && name+"_SHA256" == today
}

// checkLabels checks what the API server checks when it creates a Node.
func checkLabels(labels map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		problems := append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...)
		if len(problems) > 0 {
			return exit.Usagef("--node-labels %s=%s: %s", name, value, problems[0])
		}
	}
	return nil
}
