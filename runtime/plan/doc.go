// Package plan decides what one sync pass would do to a pod, and why.
//
// The input is the state of the pod (package podstatus) and the options of the caller. The output is a Plan, which is
// plain data. Every change that a pass makes is a Step of the plan: `podctl plan` prints the steps, and `podctl apply`
// executes the same steps.
//
// Planning has three stages, each a function of the one before:
//
//   - Decide: choose the actions that the pod's state requires, and drop those that cannot be done now. The decision is
//     final.
//   - Lay out: turn the decision into steps, with edges that order them.
//   - Explain: add the parts that need no step.
//
// Finally the plan records what happens to each object (objects.go). Only objects.go decides whether a container counts
// as replaced.
//
// The package is pure: it reads no clock, file, socket or random number, and no result depends on the order of a map.
// The same input gives the same bytes.
//
// # Where a rule is
//
//	kubelet                                    here
//	computePodActions                          choose.go, restrain.go
//	computeInitContainerActions                init.go
//	the loop over regular containers           running.go
//	containerChanged                           changed.go
//	computePodResizeAction                     resize.go
//	SyncPod (order, failures)                  layout.go, prove.go, start.go, stop.go
//	killContainer (grace), termination order   stop.go
//	container and sandbox garbage collection   start.go, remove.go
//	cleanUpContainersInPod, evictPod           remove.go
//
// docs/differences.md lists the rules in which podctl differs from the kubelet on purpose. The comment of each such
// function mentions it.
package plan
