package criconfig

import (
	"bytes"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// hostsHead is the start of the hosts file of a pod with its own network.
const hostsHead = `# Kubernetes-managed hosts file.
127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
fe00::0	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
`

// hostNetworkHead is the start of the hosts file of a pod on the node's network, before the node's own file.
const hostNetworkHead = "# Kubernetes-managed hosts file (host network).\n"

// HostsFile returns the content of the pod's /etc/hosts (kubelet: ensureHostsFile).
func HostsFile(pod *v1.Pod, node Node, podIPs []string) ([]byte, error) {
	var b bytes.Buffer
	if pod.Spec.HostNetwork {
		b.WriteString(hostNetworkHead)
		b.Write(node.HostsFile)
	} else if err := writePodHosts(&b, pod, node.ClusterDomain, podIPs); err != nil {
		return nil, err
	}
	writeAliases(&b, pod.Spec.HostAliases)
	return b.Bytes(), nil
}

func writePodHosts(b *bytes.Buffer, pod *v1.Pod, clusterDomain string, podIPs []string) error {
	hostname, domain, err := Hostname(pod, clusterDomain)
	if err != nil {
		return err
	}
	names := hostname
	if domain != "" {
		names = fmt.Sprintf("%s.%s\t%s", hostname, domain, hostname)
	}
	b.WriteString(hostsHead)
	for _, ip := range podIPs {
		b.WriteString(ip + "\t" + names + "\n")
	}
	return nil
}

func writeAliases(b *bytes.Buffer, aliases []v1.HostAlias) {
	if len(aliases) == 0 {
		return
	}
	b.WriteString("\n# Entries added by HostAliases.\n")
	for _, alias := range aliases {
		b.WriteString(alias.IP + "\t" + strings.Join(alias.Hostnames, "\t") + "\n")
	}
}
