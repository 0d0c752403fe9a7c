// Package controllers keeps the pods of workloads: a source of the agent like a directory of manifests, whose pods are those
// that the stored workloads shall have now. The workloads of directories, files and URLs are stored by package declared.
//
// In: stored workloads, word of what may have changed. Out: the pods that workloads want, each time that it is something else.
// What a workload wants is decided by package workload; pods are made, changed and deleted by the agent as those of other
// sources are. While nothing changes it asks nobody anything: it looks at the time of a directory once a second.
package controllers
