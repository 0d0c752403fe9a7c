package podspec

import (
	"cmp"
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Port is a port of the node that a pod publishes.
type Port struct {
	Protocol v1.Protocol
	Number   int32
	HostIP   string
	// ContainerPort is the target port of the container.
	ContainerPort int32
	// Path is the field that requests it.
	Path string
}

// String returns the usual form of a port: 8080/TCP.
func (p Port) String() string {
	text := fmt.Sprintf("%d/%s", p.Number, p.Protocol)
	if p.HostIP != "" {
		text = p.HostIP + ":" + text
	}
	return text
}

// Collides reports whether two ports cannot both be published because they share an address.
func (p Port) Collides(other Port) bool {
	return p.Number == other.Number && p.Protocol == other.Protocol &&
		(p.Everywhere() || other.Everywhere() || p.address() == other.address())
}

// Everywhere reports whether a port is published on all addresses of the node. The wildcard of one IP family counts for
// both, because an IPv6 socket also accepts IPv4 connections.
func (p Port) Everywhere() bool { return !p.address().IsValid() || p.address().IsUnspecified() }

// address returns the address of a port, independent of its notation.
func (p Port) address() netip.Addr {
	addr, _ := netip.ParseAddr(p.HostIP) // Loading refuses invalid addresses.
	return addr.Unmap()
}

// HostPorts returns the ports of the node that a pod uses: those it publishes or, in the node's network, those of its
// containers (kube-scheduler: GetHostPorts).
func HostPorts(pod *v1.Pod) []Port {
	var ports []Port
	for _, ref := range Containers(pod) {
		if ref.Type != Regular && ref.Type != Sidecar {
			continue
		}
		for i, p := range ref.Ports {
			if number := hostPort(pod, &p); number != 0 {
				ports = append(ports, Port{
					Protocol:      cmp.Or(p.Protocol, v1.ProtocolTCP),
					Number:        number,
					HostIP:        p.HostIP,
					ContainerPort: p.ContainerPort,
					Path:          ref.Path + "." + fieldpath.Index("ports", i),
				})
			}
		}
	}
	return ports
}

func hostPort(pod *v1.Pod, p *v1.ContainerPort) int32 {
	if pod.Spec.HostNetwork {
		return cmp.Or(p.HostPort, p.ContainerPort)
	}
	return p.HostPort
}

// PublishedPorts returns the ports of the node that a pod's sandbox publishes. In the node's network there are none,
// because the containers listen themselves.
func PublishedPorts(pod *v1.Pod) []Port {
	if pod.Spec.HostNetwork {
		return nil
	}
	var ports []Port
	for _, ref := range RegularContainers(pod) {
		for i, p := range ref.Ports {
			if p.HostPort != 0 {
				ports = append(ports, Port{
					Protocol: p.Protocol, Number: p.HostPort, HostIP: p.HostIP, ContainerPort: p.ContainerPort,
					Path: ref.Path + "." + fieldpath.Index("ports", i),
				})
			}
		}
	}
	return ports
}
