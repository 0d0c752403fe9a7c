// Package admission says for what a kubelet on this machine rejects a pod: its requests, its sysctls,
// its ports, and what it wants of its node (kubelet: canAdmitPod).
//
// In: a pod, facts of the machine, what other pods take. Out: the reason and the message of a
// rejection (Admit), or sentences for plans and for validate where podctl runs such a pod all the
// same (Notes). It is pure.
//
// # Where a rule is
//
//	kubelet                                   here
//	patternAllowlist.Admit                    node.go
//	predicateAdmitHandler.Admit               admit.go, resources.go, node.go
//	appArmorAdmitHandler.Admit                admit.go
//	GetNodeAllocatableReservation             settings.go
//
// What admits nothing else here has no rule: the topology, cpu, memory and device managers, features
// that the node declares, and a node that shuts down.
package admission
