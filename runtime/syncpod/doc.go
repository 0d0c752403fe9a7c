// Package syncpod makes one pass over one pod, like the kubelet's SyncPod: lock, observe, plan, execute, and repeat if
// the actual state differs from the observed one.
//
// The input is a manifest, or the name of a pod to delete. The output is the Outcome of the pass. The package only
// calls the packages for each part.
package syncpod
