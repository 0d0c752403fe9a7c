// Package housekeeping removes leftovers of the kept pods. It rotates full logs, and removes records of ended
// containers, leftovers of deleted pods, marks of killed pulls, and images when their disk is full.
//
// Its inputs are the pods that the agent keeps, files, the state of the runtime, and the time. It removes objects and
// logs a line for each. One task runs at a time, in parallel to the agent's loop. A pod that is locked by another
// process is skipped until the next run. Objects that podctl did not create are never touched.
//
//	schedule.go      when each task is due; pure
//	choice.go        which images are removed; pure
//	housekeeping.go  runs the tasks one after the other
//	logs.go          rotates full logs
//	records.go       records of containers, and leftovers of deleted pods
//	images.go        images
//	reclaim.go       removes everything possible at once, when a disk runs full
//
// # Where a rule is
//
//	kubelet                                       here
//	PullManager.initialize                        images.go: settlePulls
//	Kubelet.StartGarbageCollection                schedule.go
//	containerLogManager.rotateLogs                logs.go; runtime/gc
//	containerGC.evictContainers, evictSandboxes   records.go; runtime/gc: Upkeep
//	realImageGCManager.detectImages               choice.go: record
//	realImageGCManager.imagesInEvictionOrder      choice.go: order
//	realImageGCManager.GarbageCollect             choice.go: excess
//	realImageGCManager.freeSpace                  choice.go: free
package housekeeping
