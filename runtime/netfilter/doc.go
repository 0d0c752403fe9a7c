// Package netfilter gives the traffic of Services its way: it writes nftables rules of the node's kernel.
//
// In: the routes of all Services, and the addresses of pods. Out: one table for each family of addresses, replaced as a whole in
// one transaction, so that no connection finds half of it. The kernel does the rest: no process has to stay.
//
// A connection to the address of a Service, or to one of its ports of the node, is led to one of its endpoints
// (destination NAT). One that comes from a pod also gets the node's own address (masquerade): the pods of a bridge would
// otherwise answer each other directly, with an address that the client did not ask. Connections to an address of a Service
// that lead nowhere are refused.
package netfilter
