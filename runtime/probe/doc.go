// Package probe asks probes from the node, one of a container or a round of those of a pod, and
// keeps the answers in the pod's checkpoint, under its lock. When the agent asks is decided in
// runtime/agent/probers, and what follows from a verdict in runtime/plan. HTTP, TCP and gRPC are
// asked by the kubelet's own probers.
//
// In come a probe and its container, or a pod; out go Results, Reports and changed records.
package probe
