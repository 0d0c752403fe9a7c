// Package pleg reports the pods with events in the runtime. It is the kubelet's pod lifecycle event generator.
//
// Its input is the runtime. It reports the UIDs of pods that may have changed, and whether the runtime answers. If the
// runtime sends container events, the package receives them and lists all containers once a minute. If not, it lists
// them once a second. With containerd, the exit event of a process also wakes the pod: it comes before the CRI's event,
// and also if there are none. An event only wakes a pod. The pass observes what has happened.
package pleg
