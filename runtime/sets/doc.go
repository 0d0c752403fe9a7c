// Package sets decides what is pruned: what belongs to a set and is not in its manifests any more.
//
// In: what is stored, what manifests have, a set's name or labels. Out: the pods, workloads and objects to delete, and the
// claims that stay. The package is pure: it reads nothing.
package sets
