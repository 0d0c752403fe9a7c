// Package proxy does the work of kube-proxy and of a cluster's DNS for Services. It finds the ready pods, lets the
// kernel route traffic to them, and writes the names into the hosts files of pods.
//
// Its inputs are the stored Services, and notifications of changed pods. It writes the rules of runtime/netfilter, the
// file of names for new pods, and lines in the hosts files of running pods. Package runtime/service decides on their
// contents.
package proxy
