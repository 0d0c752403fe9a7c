// Package cgroup makes the cgroup of a pod, with the limits of the pod as a
// whole, before the runtime puts containers into it, and removes it when the pod
// is gone. It works with both versions of cgroups and both drivers, through the
// library the kubelet uses.
package cgroup
