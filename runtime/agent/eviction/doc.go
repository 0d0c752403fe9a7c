// Package eviction ends pods while the machine runs out of memory, disk or process ids.
//
// In: what the machine has left, what pods use, the time. Out: garbage to remove, one pod at a time to
// evict with the kubelet's message, and the conditions under which no new pods are admitted. What
// becomes of a pod is the planner's: this room names it and says why.
//
//	thresholds.go  signals and their thresholds; pure
//	pressure.go    which thresholds are met, and the conditions of the node; pure
//	rank.go        which pod goes first; pure
//	message.go     the words of an eviction; pure
//	measure.go     what the machine has left: memory, file systems, process ids
//	usage.go       what pods use: files, and what the runtime tells
//	manager.go     one look after the other
//
// # Where a rule is
//
//	kubelet (pkg/kubelet/eviction)                    here
//	ParseThresholdConfig, DefaultEvictionHard         thresholds.go
//	thresholdsMet, byEvictionPriority                 pressure.go: met
//	nodeConditions, nodeConditionsObservedSince       pressure.go: Pressure
//	managerImpl.Admit                                 runtime/admission: pressure
//	rankMemoryPressure, rankDiskPressureFunc, …       rank.go
//	evictionMessage                                   message.go
//	makeSignalObservations                            measure.go
//	managerImpl.synchronize                           manager.go
//	reclaimNodeLevelResources                         manager.go: reclaim
package eviction
