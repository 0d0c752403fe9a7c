package service

import (
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Route describes how one port of a Service is reached, and where its traffic goes.
type Route struct {
	// Name is the Service and the name of its port, if any: default/web:http.
	Name     string
	Protocol v1.Protocol
	// Addresses are the addresses of the Service. Port is its port there.
	Addresses []netip.Addr
	Port      uint16
	// NodePorts are the ports of the node that lead to the same endpoints.
	NodePorts []uint16
	// Endpoints are the addresses of ready pods. If there are none, connections are refused.
	Endpoints []netip.AddrPort
	// Sticky is set if a client always gets the same pod (sessionAffinity of the API).
	Sticky bool
}

// Routes returns the routes of all Services, sorted. A headless Service has none: its names lead to its pods.
func Routes(services []*v1.Service, pods []*v1.Pod) []Route {
	var routes []Route
	for _, s := range services {
		own := Addresses(s)
		if len(own) == 0 {
			continue
		}
		ready := Ready(s, pods)
		for i := range s.Spec.Ports {
			port := &s.Spec.Ports[i]
			routes = append(routes, Route{
				Name:      portName(s, port),
				Protocol:  port.Protocol,
				Addresses: own,
				Port:      uint16(port.Port), // the API server's rules
				NodePorts: nodePorts(s, port),
				Endpoints: endpoints(port, ready),
				Sticky:    s.Spec.SessionAffinity == v1.ServiceAffinityClientIP,
			})
		}
	}
	slices.SortStableFunc(routes, func(a, b Route) int { return strings.Compare(a.Name, b.Name) })
	return routes
}

func portName(s *v1.Service, port *v1.ServicePort) string {
	name := s.Namespace + "/" + s.Name
	if port.Name != "" {
		name += ":" + port.Name
	}
	return name
}

// Addresses returns the assigned addresses of a Service. A headless Service has none.
func Addresses(s *v1.Service) []netip.Addr {
	var found []netip.Addr
	for _, ip := range s.Spec.ClusterIPs {
		if addr, err := netip.ParseAddr(ip); err == nil {
			found = append(found, addr)
		}
	}
	return found
}

// nodePorts returns the ports of the node that lead to a port of a Service: its node port and, for a LoadBalancer, the
// port itself. The node's own addresses are used as those of a load balancer.
func nodePorts(s *v1.Service, port *v1.ServicePort) []uint16 {
	var ports []uint16
	for _, number := range published(s, port) {
		ports = append(ports, uint16(number)) // the API server's rules: 1 to 65535
	}
	return ports
}

func published(s *v1.Service, port *v1.ServicePort) []int32 {
	var ports []int32
	if port.NodePort != 0 {
		ports = append(ports, port.NodePort)
	}
	if s.Spec.Type == v1.ServiceTypeLoadBalancer {
		ports = append(ports, port.Port)
	}
	return ports
}
