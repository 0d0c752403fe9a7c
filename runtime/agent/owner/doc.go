// Package owner decides which source owns a pod, a workload or an object, and what happens to one that no source wants.
//
// In: the updates of all sources with their rules, what is stored, the time. Out: what takes effect, what waits or loses, and
// what stays or ends. The package is pure: it reads, stores and stops nothing. owner_test.go is its specification.
package owner
