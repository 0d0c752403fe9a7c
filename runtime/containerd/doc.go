// Package containerd uses containerd's own API for everything that has no call in the CRI. It loads and writes image
// archives, and shows the progress of downloads and the data that a container has written. It reports processes that
// exited before the CRI does, and ends tasks that containerd's CRI has lost. It also knows which errors of containerd
// are temporary.
//
// The input is the path of containerd's socket, and names or ids. The results are plain values.
package containerd
