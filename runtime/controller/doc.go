// Package controller stores the applied workloads with their revisions, and determines which pods each needs now. A
// cluster's controllers do this with the API server; this package uses files and one observation of the runtime.
//
// The input is validated workloads from manifests, and the existing pods. The output is the created or changed records,
// and expansions, which package workload decides. The package makes no pass and stops nothing.
package controller
