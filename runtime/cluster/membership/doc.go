// Package membership records to which cluster this machine belongs, and decides whether an API server is that of
// another cluster.
//
// The input is the record of the last registration and the uids of two objects of the API server: the Node, and the
// Service default/kubernetes. A node can read nothing else that identifies a cluster. The result is one of three: the
// same cluster, another one, or unknown. The package makes no request.
package membership
