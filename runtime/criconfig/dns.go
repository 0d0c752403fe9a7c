package criconfig

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
)

// The limits of a resolver configuration (pkg/kubelet/network/dns/dns.go).
const (
	maxNameservers   = 3
	maxSearches      = 32
	maxSearchLength  = 253
	maxSearchesTotal = 2048
)

// DNS returns the pod's resolver configuration (kubelet: Configurer.GetPodDNS). Without a cluster's DNS the policies
// ClusterFirst and ClusterFirstWithHostNet are the same as Default: the node's own configuration.
func DNS(pod *v1.Pod, node Node) (*runtimeapi.DNSConfig, error) {
	dns, err := unlimitedDNS(pod, node)
	if err != nil {
		return nil, err
	}
	limitDNS(dns)
	return dns, nil
}

func unlimitedDNS(pod *v1.Pod, node Node) (*runtimeapi.DNSConfig, error) {
	dns, err := parseResolvConf(node.ResolvConf)
	if err != nil {
		return nil, fmt.Errorf("reading the node's resolver configuration: %w", err)
	}
	switch {
	case pod.Spec.DNSPolicy == v1.DNSNone:
		dns = &runtimeapi.DNSConfig{}
	case podspec.UsesClusterDNS(pod) && len(node.ClusterDNS) > 0:
		dns = &runtimeapi.DNSConfig{
			Servers:  slices.Clone(node.ClusterDNS),
			Searches: clusterSearches(pod.Namespace, node.ClusterDomain, dns.GetSearches()),
			Options:  []string{"ndots:5"},
		}
	}
	addDNSConfig(dns, pod.Spec.DNSConfig)
	return dns, nil
}

// clusterSearches returns the search list of a pod that uses the cluster's DNS: the domains of the cluster before those
// of the node (kubelet: generateSearchesForDNSClusterFirst).
func clusterSearches(namespace, domain string, own []string) []string {
	if domain == "" {
		return own
	}
	return unique(append([]string{namespace + ".svc." + domain, "svc." + domain, domain}, own...))
}

// DNSWarning is an event about the resolver configuration of a pod.
type DNSWarning struct{ Reason, Text string }

// DNSWarnings returns a kubelet's events for the resolver configuration of a pod of the API server, if DNS returns no
// error: the cluster's DNS is not known, or entries were left out (kubelet: GetPodDNS, formDNSConfigFitsLimits).
func DNSWarnings(pod *v1.Pod, node Node) []DNSWarning {
	all, err := unlimitedDNS(pod, node)
	if err != nil {
		return nil
	}
	var out []DNSWarning
	if podspec.UsesClusterDNS(pod) && len(node.ClusterDNS) == 0 {
		out = append(out, DNSWarning{"MissingClusterDNS", fmt.Sprintf("pod: %q. kubelet does not have ClusterDNS IP "+
			"configured and cannot create Pod using %q policy. Falling back to %q policy.",
			fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), v1.DNSClusterFirst, v1.DNSDefault)})
	}
	servers, searches := len(all.GetServers()), len(all.GetSearches())
	limitDNS(all)
	if len(all.GetServers()) < servers {
		out = append(out, DNSWarning{"DNSConfigForming", "Nameserver limits were exceeded, some nameservers have " +
			"been omitted, the applied nameserver line is: " + strings.Join(all.GetServers(), " ")})
	}
	if len(all.GetSearches()) < searches {
		out = append(out, DNSWarning{"DNSConfigForming", "Search Line limits were exceeded, some search paths have " +
			"been omitted, the applied search line is: " + strings.Join(all.GetSearches(), " ")})
	}
	return out
}

func parseResolvConf(text []byte) (*runtimeapi.DNSConfig, error) {
	dns := &runtimeapi.DNSConfig{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if len(fields) < 2 {
				return nil, fmt.Errorf("nameserver list is empty")
			}
			dns.Servers = append(dns.Servers, fields[1])
		case "search":
			dns.Searches = searches(fields[1:])
		case "options":
			dns.Options = mergeOptions(dns.GetOptions(), fields[1:])
		}
	}
	return dns, nil
}

func searches(fields []string) []string {
	var list []string
	for _, s := range fields {
		if s != "." {
			s = strings.TrimSuffix(s, ".")
		}
		if s != "" && s != "." {
			list = append(list, s)
		}
	}
	return list
}

// mergeOptions replaces options by those with the same name, in place, and appends the others.
func mergeOptions(options, more []string) []string {
	for _, option := range more {
		i := slices.IndexFunc(options, func(o string) bool { return optionName(o) == optionName(option) })
		if i >= 0 {
			options[i] = option
		} else {
			options = append(options, option)
		}
	}
	return options
}

func optionName(option string) string {
	name, _, _ := strings.Cut(option, ":")
	return name
}

func addDNSConfig(dns *runtimeapi.DNSConfig, own *v1.PodDNSConfig) {
	if own == nil {
		return
	}
	dns.Servers = unique(append(dns.GetServers(), own.Nameservers...))
	dns.Searches = unique(append(dns.GetSearches(), own.Searches...))
	var options []string
	for _, o := range own.Options {
		if o.Value != nil && *o.Value != "" {
			options = append(options, o.Name+":"+*o.Value)
			continue
		}
		options = append(options, o.Name)
	}
	dns.Options = mergeOptions(dns.GetOptions(), options)
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// limitDNS drops entries that resolvers do not read.
func limitDNS(dns *runtimeapi.DNSConfig) {
	dns.Servers = dns.GetServers()[:min(len(dns.GetServers()), maxNameservers)]
	short := slices.DeleteFunc(dns.GetSearches(), func(s string) bool { return len(s) > maxSearchLength })
	dns.Searches = short[:min(len(short), maxSearches)]
	for len(strings.Join(dns.GetSearches(), " ")) > maxSearchesTotal {
		dns.Searches = dns.GetSearches()[:len(dns.GetSearches())-1]
	}
}
