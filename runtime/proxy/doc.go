// Package proxy does for Services what kube-proxy and the DNS of a cluster do: it looks which pods are ready, has the kernel lead
// traffic to them, and writes the names into the hosts files of pods.
//
// In: stored Services, and word of pods that have changed. Out: the rules of runtime/netfilter, the file of names that pods
// start with, and lines in the hosts files of pods that run. What follows from what is decided in runtime/service.
package proxy
