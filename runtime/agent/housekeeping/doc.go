// Package housekeeping removes what kept pods leave behind: it rotates full logs, and removes the
// records of containers that ended, what deleted pods left, and images when their disk is full.
//
// In: which pods the agent keeps, files, what the runtime has, the time. Out: removals, and a log
// line for each. One chore runs at a time, beside the agent's loop. A pod that somebody works on
// is left for the next time, and what is not podctl's is never touched.
//
//	schedule.go      when each chore is due; pure
//	choice.go        which images go; pure
//	housekeeping.go  the chores, one after the other
//	logs.go          full logs are rotated
//	records.go       records of containers, and what deleted pods left
//	images.go        images
//	reclaim.go       everything at once, when a disk runs full
//
// # Where a rule is
//
//	kubelet                                       here
//	Kubelet.StartGarbageCollection                schedule.go
//	containerLogManager.rotateLogs                logs.go; runtime/gc
//	containerGC.evictContainers, evictSandboxes   records.go; runtime/gc: Upkeep
//	realImageGCManager.detectImages               choice.go: see
//	realImageGCManager.imagesInEvictionOrder      choice.go: order
//	realImageGCManager.GarbageCollect             choice.go: excess
//	realImageGCManager.freeSpace                  choice.go: free
package housekeeping
