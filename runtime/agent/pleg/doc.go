// Package pleg tells which pods something has happened to: the kubelet's pod lifecycle event
// generator.
//
// In: the runtime. Out: uids of pods to look at, and whether the runtime answers. Where the runtime sends container events they are listened
// to, and all containers are listed each minute; where it does not, each second. Where the runtime is containerd, its report of a process
// that has ended wakes the pod too: it comes before the CRI's event, and where there are none. An event only wakes: what has happened is for
// the pass to observe.
package pleg
