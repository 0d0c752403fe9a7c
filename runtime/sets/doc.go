// Package sets decides what is pruned: parts of a set that are no longer in its manifests.
//
// The input is the stored content, the names in the manifests, and a set's name or labels. The output is the pods,
// workloads and objects to delete, and the claims that stay. The package is pure: it reads nothing.
package sets
