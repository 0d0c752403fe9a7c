//nolint:staticcheck // kubectl get endpoints prints v1.Endpoints, although clusters now use EndpointSlices themselves
package service

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Endpoints returns the endpoints of a Service in the form of a cluster. The addresses that get traffic are in
// addresses. Those that would get it if their pods were ready are in notReadyAddresses.
func Endpoints(s *v1.Service, pods []*v1.Pod) *v1.Endpoints {
	ready, notReady := candidates(s, pods)
	doc := &v1.Endpoints{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"},
		ObjectMeta: metav1.ObjectMeta{
			Name:              s.Name,
			Namespace:         s.Namespace,
			Labels:            s.Labels,
			CreationTimestamp: s.CreationTimestamp,
		},
	}
	ports := s.Spec.Ports
	if len(ports) == 0 {
		ports = []v1.ServicePort{{}}
	}
	for i := range ports {
		doc.Subsets = append(doc.Subsets, subsets(&ports[i], ready, notReady)...)
	}
	return doc
}

// subsets returns the endpoints of one port. The port can have different numbers in different pods.
func subsets(port *v1.ServicePort, ready, notReady []*v1.Pod) []v1.EndpointSubset {
	byNumber := map[int32]*v1.EndpointSubset{}
	subset := func(pod *v1.Pod) *v1.EndpointSubset {
		number := int32(targetPort(port, pod))
		if number == 0 && port.Port != 0 {
			return nil
		}
		if byNumber[number] == nil {
			byNumber[number] = &v1.EndpointSubset{}
			if number != 0 {
				byNumber[number].Ports = []v1.EndpointPort{{Name: port.Name, Port: number, Protocol: port.Protocol}}
			}
		}
		return byNumber[number]
	}
	for _, pod := range ready {
		if one := subset(pod); one != nil {
			one.Addresses = append(one.Addresses, endpointAddresses(pod)...)
		}
	}
	for _, pod := range notReady {
		if one := subset(pod); one != nil {
			one.NotReadyAddresses = append(one.NotReadyAddresses, endpointAddresses(pod)...)
		}
	}
	var found []v1.EndpointSubset
	for _, one := range byNumber {
		found = append(found, *one)
	}
	slices.SortStableFunc(found, func(a, b v1.EndpointSubset) int { return cmp.Compare(numberOf(&a), numberOf(&b)) })
	return found
}

func numberOf(s *v1.EndpointSubset) int32 {
	if len(s.Ports) == 0 {
		return 0
	}
	return s.Ports[0].Port
}

func endpointAddresses(pod *v1.Pod) []v1.EndpointAddress {
	var found []v1.EndpointAddress
	for _, addr := range PodAddresses(pod) {
		found = append(found, v1.EndpointAddress{
			IP:        addr.String(),
			TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	return found
}
