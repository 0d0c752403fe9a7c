// Package owner decides which source owns a pod, a workload or an object, and what happens to one that no source wants.
//
// Its inputs are the updates of all sources with their rules, the stored resources, and the time. It returns which
// resources take effect, wait or lose, and which are kept or deleted. The first source wins. Pods of a workload have
// the rank of its source. A resource that its source has not had since the agent started is kept for a short time after
// all sources were read, because a file may be replaced while the agent starts.
//
// The package is pure: it reads, stores and stops nothing. owner_test.go is its specification.
package owner
