package service

import (
	"net/netip"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podctl/podctl/podspec"
)

// Selects reports whether a Service selects a pod. A Service without a selector selects none.
func Selects(s *v1.Service, pod *v1.Pod) bool {
	return len(s.Spec.Selector) > 0 && s.Namespace == pod.Namespace &&
		labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels))
}

// Ready returns the pods that get the traffic of a Service: its candidates that are ready, or need not be
// (publishNotReadyAddresses).
func Ready(s *v1.Service, pods []*v1.Pod) []*v1.Pod {
	ready, _ := candidates(s, pods)
	return ready
}

// candidates returns the pods with an address that a Service selects, divided by whether they get traffic. It leaves
// out a pod that has ended or is being deleted, as the endpoint slices of a cluster do.
func candidates(s *v1.Service, pods []*v1.Pod) (ready, notReady []*v1.Pod) {
	for _, pod := range pods {
		over := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed || pod.DeletionTimestamp != nil
		switch {
		case !Selects(s, pod) || over || len(pod.Status.PodIPs) == 0:
		case s.Spec.PublishNotReadyAddresses || isReady(pod):
			ready = append(ready, pod)
		default:
			notReady = append(notReady, pod)
		}
	}
	return ready, notReady
}

func isReady(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// PodAddresses returns the addresses of a pod. It leaves out addresses that cannot be parsed.
func PodAddresses(pod *v1.Pod) []netip.Addr {
	var found []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		if addr, err := netip.ParseAddr(ip.IP); err == nil {
			found = append(found, addr.Unmap())
		}
	}
	return found
}

// endpoints returns the endpoints of a port. It leaves out a pod that has no port with the name of the target port.
func endpoints(port *v1.ServicePort, ready []*v1.Pod) []netip.AddrPort {
	var found []netip.AddrPort
	for _, pod := range ready {
		number := targetPort(port, pod)
		if number == 0 {
			continue
		}
		for _, addr := range PodAddresses(pod) {
			found = append(found, netip.AddrPortFrom(addr, number))
		}
	}
	slices.SortStableFunc(found, netip.AddrPort.Compare)
	return slices.Compact(found)
}

// targetPort returns the port of a pod to which a port of a Service leads. It is zero if the pod has none (FindPort of
// the endpoints controller).
func targetPort(port *v1.ServicePort, pod *v1.Pod) uint16 {
	if port.TargetPort.Type == intstr.Int {
		return uint16(port.TargetPort.IntVal) // the API server's rules: 1 to 65535
	}
	for _, ref := range podspec.Containers(pod) {
		if ref.Type != podspec.Regular && ref.Type != podspec.Sidecar {
			continue
		}
		for _, p := range ref.Ports {
			if p.Name == port.TargetPort.StrVal && p.Protocol == port.Protocol {
				return uint16(p.ContainerPort) // the API server's rules: 1 to 65535
			}
		}
	}
	return 0
}

// Target finds a port of a Service by name or number. It returns the port's number and the port of the pod to which it
// leads. Both are zero if there is none.
func Target(s *v1.Service, port string, pod *v1.Pod) (number int32, target uint16) {
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; port == p.Name || port == strconv.Itoa(int(p.Port)) {
			return p.Port, targetPort(p, pod)
		}
	}
	return 0, 0
}
