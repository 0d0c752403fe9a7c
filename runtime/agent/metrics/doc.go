// Package metrics counts and times the actions of an agent, under the kubelet's names and labels (pkg/kubelet/metrics
// and pkg/kubelet/prober), so that dashboards and alerts of a kubelet fit.
//
// Its inputs are calls of the agent. It serves a page in the text format of Prometheus, from its own registry.
package metrics
