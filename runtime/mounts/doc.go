// Package mounts reads the table of mounts of the calling thread: what lies below a directory and
// cannot be reached, because a later mount covers it, and whether mounts made in a directory
// reach other namespaces.
//
// In come directories; out go places of mounts. It changes nothing.
package mounts
