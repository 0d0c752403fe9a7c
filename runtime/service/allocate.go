package service

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// The ranges of Service addresses and node ports. They are the API server's defaults of --service-cluster-ip-range, as
// kubeadm sets it but smaller, and of --service-node-port-range.
const (
	range4    = "10.96.0.0/16"
	range6    = "fd00:10:96::/112"
	firstPort = 30000
	lastPort  = 32767
)

// hosts is the number of usable addresses of each range: 16 bits without the first and the last.
const hosts = 1<<16 - 2

// Taken holds the addresses and ports in use, which other Services cannot get.
type Taken struct {
	addresses map[netip.Addr]string
	ports     []takenPort
	// Process returns the process or setting that uses a port of the node, or an empty string. If nil, all ports are
	// free.
	Process func(podspec.Port) string
}

type takenPort struct {
	podspec.Port
	by string
}

// TakenError reports that a Service requests an address or port that it cannot get.
type TakenError struct {
	// Service is the name of the Service with its namespace. Field is the field with the request.
	Service, Field string
	// Detail is the requested value and the reason why it is not available.
	Detail string
}

// Error returns the Service, the field and the detail.
func (e *TakenError) Error() string {
	return fmt.Sprintf("service %s: %s: %s", e.Service, e.Field, e.Detail)
}

// Add records the addresses and ports of a Service.
func (t *Taken) Add(s *v1.Service) {
	if t.addresses == nil {
		t.addresses = map[netip.Addr]string{}
	}
	name := s.Namespace + "/" + s.Name
	for _, addr := range Addresses(s) {
		t.addresses[addr] = name
	}
	for _, p := range Published(s) {
		t.ports = append(t.ports, takenPort{p, "service " + name})
	}
}

// Publish records ports of the node that others use.
func (t *Taken) Publish(ports []podspec.Port, by string) {
	for _, p := range ports {
		t.ports = append(t.ports, takenPort{p, by})
	}
}

// Published returns the ports of the node that a Service uses.
func Published(s *v1.Service) []podspec.Port {
	var ports []podspec.Port
	for i := range s.Spec.Ports {
		for _, number := range published(s, &s.Spec.Ports[i]) {
			ports = append(ports, podspec.Port{
				Protocol: s.Spec.Ports[i].Protocol,
				Number:   number,
				Path:     fmt.Sprintf("spec.ports[%d]", i),
			})
		}
	}
	return ports
}

// Fill assigns the missing addresses and node ports of a Service, and records them. The Service keeps those that it had
// before. before is nil for a new Service (patchAllocatedValues of the API server). If a value is not available, Fill
// returns a *TakenError.
func (t *Taken) Fill(s, before *v1.Service) error {
	keep(s, before)
	if err := t.fillAddresses(s); err != nil {
		return err
	}
	if err := t.fillPorts(s, before); err != nil {
		return err
	}
	t.Add(s)
	return nil
}

// keep copies the values that a Service had before, unless its new version requests others.
func keep(s, before *v1.Service) {
	if before == nil {
		return
	}
	if s.Spec.ClusterIP == "" && hasAddress(s) && hasAddress(before) && before.Spec.ClusterIP != v1.ClusterIPNone {
		s.Spec.ClusterIP = before.Spec.ClusterIP
		if len(s.Spec.ClusterIPs) == 0 && slices.Equal(families(s), families(before)) {
			s.Spec.ClusterIPs = slices.Clone(before.Spec.ClusterIPs)
		}
	}
	for i := range s.Spec.Ports {
		if port := &s.Spec.Ports[i]; port.NodePort == 0 && wantsNodePort(s) {
			port.NodePort = nodePortBefore(before, port)
		}
	}
}

// nodePortBefore returns the node port that the same protocol and port had before. It is zero if there was none.
func nodePortBefore(before *v1.Service, port *v1.ServicePort) int32 {
	for i := range before.Spec.Ports {
		if p := &before.Spec.Ports[i]; p.Protocol == port.Protocol && p.Port == port.Port {
			return p.NodePort
		}
	}
	return 0
}

// hasAddress reports whether a Service has its own address, unless it requests none.
func hasAddress(s *v1.Service) bool { return s.Spec.Type != v1.ServiceTypeExternalName }

// families returns the address families of a Service: IPv4 unless it requests others.
func families(s *v1.Service) []v1.IPFamily {
	requested := s.Spec.IPFamilies
	if len(requested) == 0 {
		requested = []v1.IPFamily{v1.IPv4Protocol}
	}
	policy := s.Spec.IPFamilyPolicy
	if len(requested) > 1 || policy == nil || *policy == v1.IPFamilyPolicySingleStack {
		return requested
	}
	if requested[0] == v1.IPv4Protocol {
		return []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	}
	return []v1.IPFamily{v1.IPv6Protocol, v1.IPv4Protocol}
}

// fillAddresses assigns one address of each family.
func (t *Taken) fillAddresses(s *v1.Service) error {
	switch {
	case !hasAddress(s):
		return nil
	case s.Spec.ClusterIP == v1.ClusterIPNone:
		s.Spec.ClusterIPs = []string{v1.ClusterIPNone}
		return nil
	case len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP != "":
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	for i, requested := range s.Spec.ClusterIPs {
		if err := t.checkAddress(s, fmt.Sprintf("spec.clusterIPs[%d]", i), requested); err != nil {
			return err
		}
	}
	for _, family := range families(s)[min(len(s.Spec.ClusterIPs), len(families(s))):] {
		addr, err := t.freeAddress(s, family)
		if err != nil {
			return err
		}
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, addr.String())
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	return nil
}

// checkAddress refuses an address that is outside of podctl's ranges, because a manifest could otherwise redirect any
// traffic. It also refuses an address of another Service.
func (t *Taken) checkAddress(s *v1.Service, field, requested string) error {
	name := s.Namespace + "/" + s.Name
	addr, err := netip.ParseAddr(requested)
	if err != nil || !netip.MustParsePrefix(range4).Contains(addr) && !netip.MustParsePrefix(range6).Contains(addr) {
		text := fmt.Sprintf("%s is not one of %s or %s: omit it, and podctl assigns an address to the Service",
			requested, range4, range6)
		return &TakenError{name, field, text}
	}
	if by := t.addresses[addr]; by != "" && by != name {
		return &TakenError{name, field, fmt.Sprintf("%s is used by service %s", requested, by)}
	}
	return nil
}

// freeAddress returns a free address. A Service gets the same address each time if it is free.
func (t *Taken) freeAddress(s *v1.Service, family v1.IPFamily) (netip.Addr, error) {
	text := range4
	if family == v1.IPv6Protocol {
		text = range6
	}
	first := netip.MustParsePrefix(text).Addr().AsSlice()
	begin := hashed(s, "address") % hosts
	for i := range uint32(hosts) {
		binary.BigEndian.PutUint16(first[len(first)-2:], uint16(1+(begin+i)%hosts)) // below 1<<16
		if addr, _ := netip.AddrFromSlice(first); t.addresses[addr] == "" {
			return addr, nil
		}
	}
	return netip.Addr{}, &TakenError{
		s.Namespace + "/" + s.Name,
		"spec.clusterIP",
		"all addresses of " + text + " are taken: delete some Services",
	}
}

func hashed(s *v1.Service, of string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(of + "\x00" + s.Namespace + "/" + s.Name))
	return h.Sum32()
}

// wantsNodePort reports whether each port of a Service needs a node port.
func wantsNodePort(s *v1.Service) bool {
	switch s.Spec.Type {
	case v1.ServiceTypeNodePort:
		return true
	case v1.ServiceTypeLoadBalancer:
		return s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts
	case v1.ServiceTypeClusterIP, v1.ServiceTypeExternalName:
	}
	return false
}

// fillPorts assigns a node port to each port of a Service, and refuses those that are in use.
func (t *Taken) fillPorts(s, before *v1.Service) error {
	name := s.Namespace + "/" + s.Name
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if port.NodePort != 0 && (port.NodePort < firstPort || port.NodePort > lastPort) {
			field := fmt.Sprintf("spec.ports[%d].nodePort", i)
			text := fmt.Sprintf("%d is not one of %d to %d", port.NodePort, firstPort, lastPort)
			return &TakenError{name, field, text}
		}
		if port.NodePort == 0 && wantsNodePort(s) {
			number, err := t.freePort(s, port)
			if err != nil {
				return err
			}
			port.NodePort = number
		}
	}
	for _, p := range Published(s) {
		by := t.Owner(p)
		if by == "" && !hadPort(before, p) {
			by = t.process(p)
		}
		if by == "service "+name {
			by += " itself"
		}
		if by != "" {
			return &TakenError{name, p.Path, fmt.Sprintf("port %s of the node is used by %s", p, by)}
		}
		t.ports = append(t.ports, takenPort{p, "service " + name})
	}
	return nil
}

// Shadowed describes the ports that a Service had before and keeps, although a process uses them, too. The Service
// keeps them because the kernel already routes their connections to it, and any local user can listen on a free port.
func (t *Taken) Shadowed(s, before *v1.Service) []string {
	var notes []string
	for _, p := range Published(s) {
		if by := t.process(p); by != "" && hadPort(before, p) {
			notes = append(
				notes,
				fmt.Sprintf("port %s of the node leads to the Service, although %s uses it, too", p, by),
			)
		}
	}
	return notes
}

// hadPort reports whether a Service had a port of the node before.
func hadPort(before *v1.Service, p podspec.Port) bool {
	return before != nil && slices.ContainsFunc(Published(before), p.Collides)
}

// Owner returns the Service or pod that uses a port of the node. It is empty if there is none.
func (t *Taken) Owner(p podspec.Port) string {
	for _, other := range t.ports {
		if other.Collides(p) {
			return other.by
		}
	}
	return ""
}

// process returns the process or setting that uses a port of the node. It is empty if there is none.
func (t *Taken) process(p podspec.Port) string {
	if t.Process == nil {
		return ""
	}
	return t.Process(p)
}

// freePort returns a free node port.
func (t *Taken) freePort(s *v1.Service, port *v1.ServicePort) (int32, error) {
	const ports = lastPort - firstPort + 1
	begin := hashed(s, fmt.Sprint(port.Protocol, port.Port))
	for i := range uint32(ports) {
		number := firstPort + int32((begin+i)%ports) // below 1<<16
		p := podspec.Port{Protocol: port.Protocol, Number: number}
		if t.Owner(p)+t.process(p) == "" && !requestsPort(s, port.Protocol, number) {
			return number, nil
		}
	}
	return 0, &TakenError{s.Namespace + "/" + s.Name, "spec.ports", "all node ports are taken: delete some Services"}
}

// requestsPort reports whether a Service requests a node port, or has just been assigned it.
func requestsPort(s *v1.Service, protocol v1.Protocol, number int32) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p v1.ServicePort) bool {
		return p.Protocol == protocol && p.NodePort == number
	})
}
