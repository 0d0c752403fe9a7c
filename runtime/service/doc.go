// Package service says what Services mean on one node: which addresses and ports they have, which pods their traffic goes
// to, and by which names pods find them.
//
// In: Services, and pods with their status. Out: Services with the addresses they are given, routes and names. It is pure:
// it asks nothing and writes nothing. What a cluster does with them is described in
// https://kubernetes.io/docs/reference/networking/virtual-ips/ and
// https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/.
package service
