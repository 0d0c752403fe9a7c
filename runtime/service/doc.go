// Package service defines Services on one node: their addresses and ports, the pods that get their traffic, and the
// names under which pods find them.
//
// Its inputs are Services, and pods with their status. It returns Services with assigned addresses, routes and names.
// It is pure: it makes no calls and writes nothing. See https://kubernetes.io/docs/reference/networking/virtual-ips/
// and https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/ for the behavior of a cluster.
package service
