// Package runtimetest has what tests need of a container runtime: one in memory, a proxy
// that stands before any and disturbs calls, pods of all shapes, a tracer that kills a
// program at a change it makes on disk, and checks for leaks.
package runtimetest
