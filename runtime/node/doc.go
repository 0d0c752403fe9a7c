// Package node runs a private containerd for machines without a container runtime. It has its own socket, root and
// bridge network, and all its files are below one directory. Nothing is left when it is taken down. podctl itself does
// not need such a node; CI runners and tests create one for themselves.
//
// The input is the node's directory and options. The results are its status and errors. Calls of containerd's own API
// are in runtime/containerd.
package node
