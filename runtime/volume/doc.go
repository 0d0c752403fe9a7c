// Package volume makes a pod's volumes on disk, in the kubelet's layout and with
// the kubelet's modes, keeps their content up to date, and takes them away.
//
// What a volume shall hold is computed from the manifest alone (Content), and so
// is what lies on disk brought into a form that can be compared (Digest, OnDisk,
// Wanted): the planner decides on that whether a volume has to be prepared or
// updated. Every path comes from runtime/state.
//
// Nothing here trusts what a container could have written: paths inside a volume
// are opened without leaving it, and what was opened is used, not its name.
package volume
