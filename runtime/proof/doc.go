// Package proof checks whether a sandbox or a container can be created, as far as possible without creating it: its
// configuration, missing features of the node and the runtime, and the files at its mounts.
//
// The input is Facts: a pod with its volumes and images, the node and the runtime. The output is an error with the
// kubelet's reason, or nil. The package reads the disk and changes nothing. An observation makes all checks (Faults),
// so that a plan shows a change that would fail as held. The executor repeats them once images and volumes exist,
// before the first stop. It creates the sandbox and the containers with messages from the same values.
//
// podctl does not refuse because of unknown facts: another runtime may accept what runc refuses, and only the runtime
// can see the files in an image (docs/limits.md).
package proof
