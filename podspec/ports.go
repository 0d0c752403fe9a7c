package podspec

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// Port is a port of the node that a pod publishes.
type Port struct {
	Protocol v1.Protocol
	Number   int32
	HostIP   string
	// ContainerPort is where the container listens.
	ContainerPort int32
	// Path is the field that asks for it.
	Path string
}

// String is how people write a port: 8080/TCP.
func (p Port) String() string {
	text := fmt.Sprintf("%d/%s", p.Number, p.Protocol)
	if p.HostIP != "" {
		text = p.HostIP + ":" + text
	}
	return text
}

// Collides tells that two ports cannot both be published: on one address, or on all of them.
func (p Port) Collides(other Port) bool {
	return p.Number == other.Number && p.Protocol == other.Protocol &&
		(p.Everywhere() || other.Everywhere() || p.HostIP == other.HostIP)
}

// Everywhere tells that a port is published on all addresses of the node.
func (p Port) Everywhere() bool { return p.HostIP == "" || p.HostIP == "0.0.0.0" || p.HostIP == "::" }

// PublishedPorts are the ports of the node that a pod's sandbox publishes; none
// with the node's own network, where the containers listen themselves.
func PublishedPorts(pod *v1.Pod) []Port {
	var ports []Port
	if pod.Spec.HostNetwork {
		return nil
	}
	for _, ref := range RegularContainers(pod) {
		for i, p := range ref.Ports {
			if p.HostPort != 0 {
				ports = append(ports, Port{
					Protocol: p.Protocol, Number: p.HostPort, HostIP: p.HostIP, ContainerPort: p.ContainerPort,
					Path: ref.Path + ".ports[" + strconv.Itoa(i) + "]",
				})
			}
		}
	}
	return ports
}
