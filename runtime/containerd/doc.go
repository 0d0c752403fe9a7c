// Package containerd does what only containerd's own API can do and the CRI has no call for:
// it loads and writes image archives, shows the progress of downloads and what a container has
// written, reports processes that ended before the CRI does, and ends tasks that containerd's CRI
// has lost. It also knows which of containerd's errors pass by themselves.
//
// In come the path of containerd's socket and names or ids; out go plain values.
package containerd
