// Package cri connects to a container runtime: it finds endpoints, makes calls with deadlines, explains errors, repeats
// calls and traces them.
//
// The input is an endpoint, or the places to look for one. The result is a Client that speaks the CRI (k8s.io/cri-api).
package cri
