// Package mounts reads the mount table of the calling thread. It finds mounts below a directory that cannot be reached
// because a later mount covers them. It also reports whether mounts in a directory propagate to other namespaces.
//
// The input is directories. The results are mount points. The package changes nothing.
package mounts
