// Package stats measures what the node, its pods and their containers use: the documents and metrics that
// metrics-server, Prometheus and dashboards read from a node.
//
// The input is the pods of the node, their cgroups (of both versions) and the runtime's statistics of disks and
// networks. The results are the Summary of a kubelet (stats.kubelet.k8s.io/v1alpha1) and collectors of the metrics that
// are made from it. Nothing is measured in the background: a request measures, and requests within ten seconds get the
// same values.
package stats
