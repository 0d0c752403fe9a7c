package model

import (
	"slices"
	"strings"
)

// loopback is the address of a pod on the node's network if the machine has no address.
const loopback = "127.0.0.1"

// SandboxOf returns the sandbox with that ID; nil if it does not exist.
func (o *Observed) SandboxOf(id string) *Sandbox {
	i := slices.IndexFunc(o.Sandboxes, func(s Sandbox) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &o.Sandboxes[i]
}

// PodIPs returns the addresses of a pod in this sandbox, the primary one first. A pod on the node's network has the
// node's addresses. Otherwise it has those of the sandbox, if the sandbox is ready (kubelet: determinePodSandboxIPs,
// sortPodIPs, generateAPIPodStatus).
func (s *Sandbox) PodIPs(node []string) []string {
	switch {
	case s == nil:
		return nil
	case s.HostNetwork:
		return node
	case s.State != SandboxReady:
		return nil
	}
	return SortIPs(s.IPs, node)
}

// Address returns the address for probes and hooks of a pod in this sandbox; empty if it has none. Callers must not use
// the node itself instead.
func (s *Sandbox) Address(node []string) string {
	ips := s.PodIPs(node)
	switch {
	case len(ips) > 0:
		return ips[0]
	case s != nil && s.HostNetwork:
		return loopback
	}
	return ""
}

// SortIPs puts the address of the node's own family first, and keeps one of each family (kubelet: sortPodIPs).
func SortIPs(ips, node []string) []string {
	isV6 := func(ip string) bool { return strings.Contains(ip, ":") }
	primaryV6 := len(node) > 0 && isV6(node[0])
	var sorted []string
	for _, wanted := range []bool{primaryV6, !primaryV6} {
		if i := slices.IndexFunc(ips, func(ip string) bool { return isV6(ip) == wanted }); i >= 0 {
			sorted = append(sorted, ips[i])
		}
	}
	return sorted
}
