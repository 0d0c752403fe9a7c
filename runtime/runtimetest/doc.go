// Package runtimetest has what tests need of a container runtime: a proxy that
// stands before a real one and records every call.
package runtimetest
