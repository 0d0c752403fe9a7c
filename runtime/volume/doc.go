// Package volume makes a pod's volumes on disk, in the kubelet's layout and with
// the kubelet's modes, keeps their content up to date, and takes them away.
//
// What comes in is a Context: the pod with its objects, and its place on disk. A mounter makes one
// volume of it; a collector computes what that shall hold, from the manifest alone, and a writer
// brings it to the disk. What a volume should hold and what it holds are compared by digests
// (Wanted, Look): the planner decides on these whether a volume has to be prepared or updated.
// Every path comes from runtime/state.
//
// Nothing here trusts what a container could have written: paths inside a volume
// are opened without leaving it, and what was opened is used, not its name.
package volume
