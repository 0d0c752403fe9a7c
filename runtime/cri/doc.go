// Package cri is the connection to a container runtime: endpoints, calls with their deadlines,
// errors in plain words, retries, and tracing.
//
// In: an endpoint, or the places where one may be found. Out: a Client that speaks the CRI
// (k8s.io/cri-api).
package cri
