// Package admission says for what a kubelet on this machine would reject a pod: its requests, its
// sysctls and the labels that it wants of its node (kubelet: canAdmitPod).
//
// In: a pod and facts of the machine. Out: sentences for plans and for validate, as podctl runs
// such a pod all the same. It is pure, and may import neither the planner nor a client.
package admission
