// Package admission finds the reasons for which a kubelet on this machine rejects a pod: its requests, sysctls, ports,
// and its requirements for the node (kubelet: canAdmitPod).
//
// The input is a pod, facts of the machine, and the resources of other pods. The output is the reason and the message
// of a rejection (Admit), or sentences for plans and for validate if podctl runs such a pod anyway (Notes). The package
// is pure.
//
// # Where a rule is
//
//	kubelet                                   here
//	patternAllowlist.Admit                    node.go
//	predicateAdmitHandler.Admit               admit.go, resources.go, node.go
//	CriticalPodAdmissionHandler               preempt.go
//	appArmorAdmitHandler.Admit                admit.go: noAppArmor
//	declaredFeaturesAdmitHandler.Admit        admit.go: missingFeature
//	the device manager's Allocate             admit.go: noDevices
//	sortPendingResizes                        resizes.go
//	GetNodeAllocatableReservation             settings.go
//
// Other admission handlers of the kubelet have no rule here: the topology, cpu and memory managers, and a node that
// shuts down.
package admission
