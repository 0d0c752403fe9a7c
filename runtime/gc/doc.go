// Package gc finds and removes objects of podctl that are no longer needed: records, sandboxes, files, logs, events and
// claims.
//
// The input is the state of the runtime and the disk. The result is a list of Garbage. Each piece is checked again
// under its pod's lock before it is removed. Apart from orphans, the package never changes objects without a mark of
// podctl.
//
// Orphans are pods that a kubelet has left. The package records that their deletion has begun, and the agent of a
// node deletes them.
package gc
