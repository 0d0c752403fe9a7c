// Package cluster connects an agent to the API server of a cluster.
//
// The input is a kubeconfig file. The result is a Client with clients of API groups (apiclient), and the health of the
// connection: whether the API server responds, since when, and the last error.
//
// The package makes no request itself and knows no pods. Only the program podctl-node links it.
package cluster
