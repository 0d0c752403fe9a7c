// Package podsapi serves the kubelet's local Pods API (k8s.io/kubelet/pkg/apis/pods/v1alpha1) over gRPC: ListPods,
// GetPod and WatchPods.
//
// Its inputs are an Agent and notifications of possible changes. It sends pods with their status to clients that list
// or watch. Without clients it does not read pods.
//
//	server.go   the calls
//	watches.go  the watches and their events
//
// Pods are in the applied version. They do not contain values from Secrets.
package podsapi
