package criconfig

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
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
	dns, err := parseResolvConf(node.ResolvConf)
	if err != nil {
		return nil, fmt.Errorf("reading the node's resolver configuration: %w", err)
	}
	if pod.Spec.DNSPolicy == v1.DNSNone {
		dns = &runtimeapi.DNSConfig{}
	}
	addDNSConfig(dns, pod.Spec.DNSConfig)
	limitDNS(dns)
	return dns, nil
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
