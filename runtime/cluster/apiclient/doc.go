// Package apiclient makes requests to the API groups that a node uses.
//
// The input is the configuration of a connection. The result is a Client, which has a REST client for each API group,
// and Do, which returns the object of a response with its type.
//
// It replaces client-go's clientset, whose scheme registers the types of all API groups: 13 MB of podctl-node. The
// package has a scheme of its own with the types that a node needs. It makes no decision, and knows no pods.
package apiclient
