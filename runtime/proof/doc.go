// Package proof says why a sandbox or a container cannot be made, as far as that can be known
// without making it: its configuration, what the node and the runtime lack for it, and what lies
// on disk where it mounts.
//
// In: a pod, facts of the node and the runtime, and the values of its messages (Resolve). Out: an error with the
// kubelet's reason, or nothing. It reads the disk and changes nothing. A plan is made with what an
// observation proves; the executor proves it again, once images and volumes are there, and before
// the first stop.
//
// What it does not know refuses nothing: another runtime may do what runc refuses, and an image
// shows only to the runtime what lies in it (docs/limits.md).
package proof
