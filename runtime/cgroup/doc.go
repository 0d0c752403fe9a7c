// Package cgroup makes the cgroup of a pod, with the limits of the pod as a
// whole, before the runtime puts containers into it, and removes it when the pod
// is gone. It works with both versions of cgroups and both drivers, through the
// library the kubelet uses.
//
// Above the pods lie the cgroups of the quality-of-service classes. They are
// made when they are missing and left alone when they are there, but for the
// weight of the burstable ones, which follows the pods in it.
//
// A path is one of the driver's: /kubepods/burstable/podUID with cgroupfs, and
// /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice with
// systemd.
//
// In come paths and limits; out go errors that say what the machine cannot do and which processes
// are in the way.
package cgroup
