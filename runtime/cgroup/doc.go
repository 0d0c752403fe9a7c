// Package cgroup creates the cgroup of a pod with the limits of the whole pod, before the runtime adds containers, and
// removes it with the pod and the processes that are left in it. It supports both versions of cgroups and both drivers,
// with the library that the kubelet uses.
//
// Above the pods are the cgroups of the quality-of-service classes. The package creates missing ones and does not
// change existing ones, except for the weight of the burstable one, which depends on its pods.
//
// Paths have the driver's form: /kubepods/burstable/podUID with cgroupfs, and
// /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice with systemd.
//
// The input is paths and limits. The results are errors that name missing features of the machine or processes that
// block a removal.
package cgroup
