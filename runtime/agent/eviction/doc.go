// Package eviction ends pods while the machine runs out of memory, disk or process IDs, and pods that exceed their own
// limits of disk space.
//
// Its inputs are the available resources of the machine, the usage of pods, and the time. It removes garbage, then
// evicts one pod at a time with the kubelet's message, and sets the conditions under which no new pods are admitted.
// Beside that, it measures each pod with disk limits, and evicts it once it exceeds one. The package selects the pod
// and the reason. The planner decides what is done to the pod.
//
//	thresholds.go  signals and their thresholds; pure
//	pressure.go    which thresholds are met, and the conditions of the node; pure
//	rank.go        which pod goes first; pure
//	message.go     the message of an eviction; pure
//	measure.go     the available resources of the machine: memory, file systems, process IDs
//	usage.go       the usage of pods: files, and the statistics of the runtime
//	walk.go        walks over the files of pods, one at a time
//	manager.go     the loop for the resources of the machine
//	limits.go      which of its own limits a pod exceeds, with the message; pure
//	limiter.go     the loop for the limits of pods
//
// # Where a rule is
//
//	kubelet (pkg/kubelet/eviction)                    here
//	ParseThresholdConfig, DefaultEvictionHard         thresholds.go
//	addAllocatableThresholds                          thresholds.go: WithAllocatable
//	thresholdsMet, byEvictionPriority                 pressure.go: tracker
//	thresholdsMetGracePeriod, thresholdsFirstObserved pressure.go: tracker
//	nodeConditions, nodeConditionsObservedSince       pressure.go: Pressure
//	managerImpl.Admit                                 runtime/admission: underPressure
//	rankMemoryPressure, rankDiskPressureFunc, …       rank.go
//	evictionMessage                                   message.go
//	makeSignalObservations                            measure.go
//	managerImpl.synchronize                           manager.go
//	reclaimNodeLevelResources                         manager.go: reclaim
//	localStorageEviction                              limits.go
//	calcEphemeralStorage, makeContainerStats          usage.go, walk.go, limits.go: storage
//	fs.DiskUsage                                      safefs: Dir.Usage
package eviction
