// Package nodestatus keeps the Node object and the lease of this machine in the API server.
//
// The input is the settings of the node (Node), and facts: addresses, capacity, images, features of the runtime,
// pressure and causes for which the node is not ready (Facts). The output is the registered Node, patches of its
// status, its events, and its lease. What is sent and when is decided by functions of values. The Manager makes the
// requests, and Runtime reads the facts of the container runtime. The package knows no pods, and its name record is the
// only file that it writes.
//
// # Where a rule is
//
//	kubelet                                            here
//	initialNode                                        node.go: newNode
//	updateDefaultLabels, reconcileHugePageResource     node.go: reconcile
//	nodestatus.Setter                                  status.go, conditions.go, runtime.go
//	nodeStatusHasChanged                               status.go: hasChanged
//	recordNodeStatusEvent, rebootEvent                 event.go
//	isUpdateStatusPeriodExpired, calculateDelay        pace.go
//	registerWithAPIServer                              register.go
//	syncNodeStatus, fastNodeStatusUpdate               manager.go
//	updateRuntimeUp, runtimeState                      runtime.go
//	SetNodeOwnerFunc                                   lease.go
package nodestatus
