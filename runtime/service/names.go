package service

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
)

// Name is a name under which pods find an address.
type Name struct {
	Namespace string `json:"namespace"`
	// Name is the name within the namespace: web, or web-0.web for one pod.
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
}

// Names returns the names of all Services, sorted. The name of a Service leads to its own address. The name of a
// headless Service leads to all its ready pods. A pod whose hostname is set and whose subdomain is the Service has its
// own name.
func Names(services []*v1.Service, pods []*v1.Pod) []Name {
	var names []Name
	for _, s := range services {
		if s.Spec.Type == v1.ServiceTypeExternalName {
			continue
		}
		ready := Ready(s, pods)
		own := Addresses(s)
		if s.Spec.ClusterIP == v1.ClusterIPNone {
			own = addressesOf(ready)
		}
		for _, addr := range own {
			names = append(names, Name{s.Namespace, s.Name, addr})
		}
		for _, pod := range ready {
			names = append(names, podNames(s, pod)...)
		}
	}
	slices.SortStableFunc(names, func(a, b Name) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), a.Address.Compare(b.Address))
	})
	return slices.Compact(names)
}

func addressesOf(pods []*v1.Pod) []netip.Addr {
	var found []netip.Addr
	for _, pod := range pods {
		found = append(found, PodAddresses(pod)...)
	}
	return found
}

func podNames(s *v1.Service, pod *v1.Pod) []Name {
	if pod.Spec.Hostname == "" || pod.Spec.Subdomain != s.Name {
		return nil
	}
	var names []Name
	for _, addr := range PodAddresses(pod) {
		names = append(names, Name{s.Namespace, pod.Spec.Hostname + "." + s.Name, addr})
	}
	return names
}

// domain is the end of the full names of Services (clusterDomain of a kubelet; kubeadm's default).
const domain = "cluster.local"

// hostsHead starts the lines of Services in a hosts file.
const hostsHead = "\n# Services, by podctl.\n"

// Hosts returns the lines for the hosts file of a pod. It returns nil for a pod that does not use the DNS of a cluster
// (dnsPolicy). node is the host name of the machine. The lines override no name outside of Services:
//   - A pod of another namespace gets NAME.NAMESPACE only if that cannot be a name on the Internet or in the node's
//     domain.
//   - A short name of the pod's own namespace is left out if it is a name of the pod, the node or a loopback address.
func Hosts(pod *v1.Pod, node string, names []Name) []byte {
	if len(names) == 0 || !podspec.UsesClusterDNS(pod) {
		return nil
	}
	var b strings.Builder
	b.WriteString(hostsHead)
	for _, n := range names {
		fmt.Fprintf(&b, "%s\t%[2]s.%[3]s.svc.%[4]s\t%[2]s.%[3]s.svc", n.Address, n.Name, n.Namespace, domain)
		own := n.Namespace == pod.Namespace
		if own || !isTopLevel(n.Namespace) && !strings.HasSuffix(node, "."+n.Namespace) {
			b.WriteString("\t" + n.Name + "." + n.Namespace)
		}
		if own && !isTaken(n.Name, pod, node) {
			b.WriteString("\t" + n.Name)
		}
		b.WriteString("\n")
	}
	return []byte(b.String())
}

// isTopLevel reports whether names outside of a cluster can end with a label: a top-level domain, or a name that
// machines and local networks use instead (RFC 6761, RFC 6762).
func isTopLevel(label string) bool {
	switch label {
	case "local", "localhost", "localdomain", "internal", "home", "lan", "corp", "onion":
		return true
	}
	// Some top-level domains are in the list only with the level below them.
	_, listed := publicsuffix.PublicSuffix("x." + label)
	return listed
}

// isTaken reports whether a short name has another meaning in a pod: the pod, the node or a loopback address. A name of
// two labels, such as that of a pod of a headless Service, may be a name on the Internet.
func isTaken(name string, pod *v1.Pod, node string) bool {
	if strings.HasPrefix(name, "ip6-") || name == "localhost" {
		return true
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 && isTopLevel(name[i+1:]) {
		return true
	}
	short, _, _ := strings.Cut(node, ".")
	for _, other := range []string{node, short, pod.Name, pod.Spec.Hostname, ptr.Deref(pod.Spec.HostnameOverride, "")} {
		if strings.EqualFold(name, other) {
			return true
		}
	}
	return false
}

// WithHosts returns a hosts file in which these lines replace the earlier lines of Services. A name that the file
// itself has, for example from hostAliases, keeps its address, because some resolvers return the addresses of all lines
// with a name.
func WithHosts(file, lines []byte) []byte {
	if i := bytes.LastIndex(file, []byte(hostsHead)); i >= 0 {
		file = file[:i]
	}
	taken := map[string]bool{}
	for line := range bytes.Lines(file) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		for name := range bytes.FieldsSeq(line) {
			taken[strings.ToLower(string(name))] = true
		}
	}
	whole := slices.Clone(file)
	for line := range strings.Lines(string(lines)) {
		address, names, isNames := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isNames {
			whole = append(whole, line...)
			continue
		}
		free := slices.DeleteFunc(strings.Split(names, "\t"), func(name string) bool { return taken[name] })
		if len(free) > 0 {
			whole = append(whole, address+"\t"+strings.Join(free, "\t")+"\n"...)
		}
	}
	return whole
}
