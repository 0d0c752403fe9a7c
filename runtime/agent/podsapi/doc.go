// Package podsapi serves the kubelet's local Pods API (k8s.io/kubelet/pkg/apis/pods/v1alpha1) by
// gRPC: ListPods, GetPod and WatchPods.
//
// In: an Agent, and word of what may have changed. Out: pods with their status, to those who ask
// and those who watch. Nothing is looked at while nobody asks or watches.
//
//	server.go   the calls
//	watches.go  who watches, and what they are told
//
// Pods are as they were applied: what they take from Secrets is not in them.
package podsapi
