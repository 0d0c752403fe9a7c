// Package nodemetrics counts what a node of a cluster does, with the names of a kubelet's metrics: requests to the API
// server, statuses of pods, reviews of clients, certificates, the start of the node and work on volumes.
//
// The input is calls with durations and results; the output is a page in the format of Prometheus, together with the
// metrics of the agent. It makes no request and reads no file.
package nodemetrics
