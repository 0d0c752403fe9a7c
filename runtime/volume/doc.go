// Package volume makes a pod's volumes on disk, in the kubelet's layout and with
// the kubelet's modes, keeps their content up to date, and takes them away. What
// a volume shall hold is computed from the manifest alone; every path comes from
// runtime/state.
package volume
