// Package syncpod makes one pass over one pod, as the kubelet's SyncPod does: lock, observe,
// plan, execute, and again when the world was not as observed.
//
// In: a manifest, or the name of a pod that goes. Out: the Outcome of the pass. It knows the
// rooms of each part, and does nothing itself.
package syncpod
