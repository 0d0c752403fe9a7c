// Package metrics counts and times what an agent does, under the kubelet's own names and labels
// (pkg/kubelet/metrics and pkg/kubelet/prober), so that dashboards and alerts of a kubelet fit.
//
// In: what the agent tells. Out: a page in the text format of Prometheus. It has a registry of its
// own.
package metrics
