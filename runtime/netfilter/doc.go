// Package netfilter routes the traffic of Services: it writes nftables rules to the node's kernel.
//
// Its inputs are the routes of all Services, and the addresses of pods. It writes one table for each address family,
// and replaces it in one transaction, so that no connection finds an incomplete table. The kernel does the rest: no
// process has to keep running.
//
// A connection to the address of a Service, or to one of its ports of the node, is routed to one of its endpoints
// (destination NAT). A connection from a pod also gets the node's own address (masquerade). Otherwise, the pods of a
// bridge would answer each other directly, with an address that the client did not use. Connections to an address of a
// Service without an endpoint are refused.
package netfilter
