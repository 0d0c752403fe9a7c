// Package probe runs probes from the node, either one probe of a container or a round of all probes of a pod. It
// records the results in the pod's checkpoint, under the pod's lock. Package runtime/agent/probers decides when the
// agent runs probes, and runtime/plan what follows from a verdict. The kubelet's own probers run HTTP, TCP and gRPC
// probes.
//
// The inputs are a probe and its container, or a pod. The results are Results, Reports and changed records.
package probe
