// Package controller keeps the workloads that were applied, with their revisions, and finds out which pods each shall
// have now: what the controllers of a cluster do with the API server, it does with files and one look at the runtime.
//
// In: workloads of manifests, already validated, and the pods that are there. Out: what was created or changed, and
// expansions (package workload), which decides. It makes no pass and stops nothing.
package controller
