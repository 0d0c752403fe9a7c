// Package runtimetest has tools for tests with a container runtime. It has an in-memory runtime, a proxy that disturbs
// calls to a runtime, and pods of all shapes. It also has a tracer that kills a program at one of its changes on disk,
// and checks for leaks.
//
// The input is a socket's path and the events that the test requests. The results are the calls that were made and the
// remaining state. Only tests import it.
package runtimetest
