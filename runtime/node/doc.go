// Package node runs a private containerd for machines that have no container
// runtime: own socket, own root, own bridge network, everything below one
// directory, and nothing left of it when it is taken down. podctl itself needs
// no such node; it is what a CI runner or a test brings up for itself.
//
// In come the node's directory and options; out go its status and errors. Calls of containerd's own
// API are in runtime/containerd.
package node
