// Package probe asks one probe of one container once, from the node, and says
// what came back. It knows no thresholds and has no memory: those are decided in
// runtime/plan. HTTP, TCP and gRPC are asked by the kubelet's own probers.
//
// In come a probe, its container and a function that runs commands; out goes a Result. It may
// not import the planner.
package probe
