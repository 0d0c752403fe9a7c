// Package controllers keeps the pods of workloads: a source of the agent like a directory of manifests, whose pods are those
// that the stored workloads shall have now. What directories, files and URLs have beside pods it stores first, as apply does, and
// removes once they do not want it any more; decide.go says what, and is pure.
//
// In: what other sources want, stored workloads and objects, word of what may have changed. Out: the pods that workloads want, each
// time that it is something else, and what is wrong with what sources want.
// What a workload wants is decided by package workload; pods are made, changed and deleted by the agent as those of other
// sources are. While nothing changes it asks nobody anything: it looks at the time of a directory once a second.
package controllers
