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

// The ranges that Services have their addresses from, and the node ports (the API server's defaults of
// --service-cluster-ip-range, as kubeadm sets it but smaller, and of --service-node-port-range).
const (
	range4    = "10.96.0.0/16"
	range6    = "fd00:10:96::/112"
	firstPort = 30000
	lastPort  = 32767
)

// hosts is how many addresses each range is used for: both leave 16 bits for them, without the first and the last.
const hosts = 1<<16 - 2

// Taken is what Services have that others cannot have.
type Taken struct {
	addresses map[netip.Addr]string
	ports     []takenPort
	// Process returns the process or setting that has a port of the node, or an empty string; nil means that all are free.
	Process func(podspec.Port) string
}

type takenPort struct {
	podspec.Port
	by string
}

// TakenError says that a Service asks for what it cannot have.
type TakenError struct {
	// Service is the name of the Service, with its namespace, and Field what it asks with.
	Service, Field string
	// Detail says what it asks for, and why it cannot have it.
	Detail string
}

// Error says what to do.
func (e *TakenError) Error() string {
	return fmt.Sprintf("service %s: %s: %s", e.Service, e.Field, e.Detail)
}

// Add notes what a Service has.
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

// Publish notes ports of the node that somebody else has.
func (t *Taken) Publish(ports []podspec.Port, by string) {
	for _, p := range ports {
		t.ports = append(t.ports, takenPort{p, by})
	}
}

// Published are the ports of the node that a Service takes.
func Published(s *v1.Service) []podspec.Port {
	var ports []podspec.Port
	for i := range s.Spec.Ports {
		for _, number := range published(s, &s.Spec.Ports[i]) {
			ports = append(ports, podspec.Port{Protocol: s.Spec.Ports[i].Protocol, Number: number, Path: fmt.Sprintf("spec.ports[%d]", i)})
		}
	}
	return ports
}

// Fill gives a Service the addresses and node ports that it lacks, and notes them. What it had before it keeps; before is nil
// for a new one (patchAllocatedValues of the API server). What cannot be given is a *TakenError.
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

// keep takes over what a Service was given before, where its new version does not ask for something else.
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

// nodePortBefore is the node port that a port had under its name or its number.
func nodePortBefore(before *v1.Service, port *v1.ServicePort) int32 {
	for i := range before.Spec.Ports {
		if p := &before.Spec.Ports[i]; p.Protocol == port.Protocol && p.Port == port.Port {
			return p.NodePort
		}
	}
	return 0
}

// hasAddress reports whether a Service has an address of its own, unless it asks for none.
func hasAddress(s *v1.Service) bool { return s.Spec.Type != v1.ServiceTypeExternalName }

// families are the families of a Service's addresses: IPv4 unless it asks for others.
func families(s *v1.Service) []v1.IPFamily {
	asked := s.Spec.IPFamilies
	if len(asked) == 0 {
		asked = []v1.IPFamily{v1.IPv4Protocol}
	}
	policy := s.Spec.IPFamilyPolicy
	if len(asked) > 1 || policy == nil || *policy == v1.IPFamilyPolicySingleStack {
		return asked
	}
	if asked[0] == v1.IPv4Protocol {
		return []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	}
	return []v1.IPFamily{v1.IPv6Protocol, v1.IPv4Protocol}
}

// fillAddresses gives a Service one address of each of its families.
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
	for i, asked := range s.Spec.ClusterIPs {
		if err := t.checkAddress(s, fmt.Sprintf("spec.clusterIPs[%d]", i), asked); err != nil {
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

// checkAddress refuses an address that is not of podctl's ranges, as a manifest could take the traffic to any other with it,
// and one that another Service has.
func (t *Taken) checkAddress(s *v1.Service, field, asked string) error {
	name := s.Namespace + "/" + s.Name
	addr, err := netip.ParseAddr(asked)
	if err != nil || !netip.MustParsePrefix(range4).Contains(addr) && !netip.MustParsePrefix(range6).Contains(addr) {
		return &TakenError{name, field, fmt.Sprintf("%s is not one of %s or %s: leave it out, and podctl gives the Service an address", asked, range4, range6)}
	}
	if by := t.addresses[addr]; by != "" && by != name {
		return &TakenError{name, field, fmt.Sprintf("%s is that of service %s", asked, by)}
	}
	return nil
}

// freeAddress is an address that nobody has. The same Service is given the same one, where that is free.
func (t *Taken) freeAddress(s *v1.Service, family v1.IPFamily) (netip.Addr, error) {
	text := range4
	if family == v1.IPv6Protocol {
		text = range6
	}
	first := netip.MustParsePrefix(text).Addr().AsSlice()
	begin := hashed(s, "address") % hosts
	for i := range uint32(hosts) {
		binary.BigEndian.PutUint16(first[len(first)-2:], uint16(1+(begin+i)%hosts)) //nolint:gosec // below 1<<16
		if addr, _ := netip.AddrFromSlice(first); t.addresses[addr] == "" {
			return addr, nil
		}
	}
	return netip.Addr{}, &TakenError{s.Namespace + "/" + s.Name, "spec.clusterIP", "all addresses of " + text + " are taken: delete some Services"}
}

func hashed(s *v1.Service, of string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(of + "\x00" + s.Namespace + "/" + s.Name))
	return h.Sum32()
}

// wantsNodePort reports whether each port of a Service has one of the node.
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

// fillPorts gives each port of a Service its port of the node, and refuses those that others have.
func (t *Taken) fillPorts(s, before *v1.Service) error {
	name := s.Namespace + "/" + s.Name
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if port.NodePort != 0 && (port.NodePort < firstPort || port.NodePort > lastPort) {
			return &TakenError{name, fmt.Sprintf("spec.ports[%d].nodePort", i), fmt.Sprintf("%d is not one of %d to %d", port.NodePort, firstPort, lastPort)}
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
			return &TakenError{name, p.Path, fmt.Sprintf("port %s of the node is taken by %s", p, by)}
		}
		t.ports = append(t.ports, takenPort{p, "service " + name})
	}
	return nil
}

// Shadowed says which ports that a Service had before, and keeps, a process has, too. They are not taken away from the Service: the
// kernel leads connections to it already, and any local user can listen on a free port.
func (t *Taken) Shadowed(s, before *v1.Service) []string {
	var notes []string
	for _, p := range Published(s) {
		if by := t.process(p); by != "" && hadPort(before, p) {
			notes = append(notes, fmt.Sprintf("port %s of the node leads to the Service, although %s has it, too", p, by))
		}
	}
	return notes
}

// hadPort reports whether a Service had a port of the node before.
func hadPort(before *v1.Service, p podspec.Port) bool {
	return before != nil && slices.ContainsFunc(Published(before), p.Collides)
}

// Owner returns the Service or pod that has a port of the node; empty for none.
func (t *Taken) Owner(p podspec.Port) string {
	for _, other := range t.ports {
		if other.Collides(p) {
			return other.by
		}
	}
	return ""
}

// process returns the process or setting that has a port of the node; empty for none.
func (t *Taken) process(p podspec.Port) string {
	if t.Process == nil {
		return ""
	}
	return t.Process(p)
}

// freePort is a node port that nobody has.
func (t *Taken) freePort(s *v1.Service, port *v1.ServicePort) (int32, error) {
	const ports = lastPort - firstPort + 1
	begin := hashed(s, fmt.Sprint(port.Protocol, port.Port))
	for i := range uint32(ports) {
		number := firstPort + int32((begin+i)%ports) //nolint:gosec // below 1<<16
		if p := (podspec.Port{Protocol: port.Protocol, Number: number}); t.Owner(p)+t.process(p) == "" && !asks(s, port.Protocol, number) {
			return number, nil
		}
	}
	return 0, &TakenError{s.Namespace + "/" + s.Name, "spec.ports", "all node ports are taken: delete some Services"}
}

// asks reports whether a Service asks for a node port itself, or was given it just before.
func asks(s *v1.Service, protocol v1.Protocol, number int32) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p v1.ServicePort) bool { return p.Protocol == protocol && p.NodePort == number })
}
