// Package plan decides what one sync pass would do to a pod, and why.
//
// In: what is true of the pod (package podstatus) and the user's wishes. Out: a Plan, which
// is plain data. Whatever a pass does to the world is a Step of the plan; `podctl plan`
// prints the steps and `podctl apply` executes the very same ones.
//
// It goes in three steps, each a function of the one before. To decide is to choose what the
// pod's state asks for and to take out of that what cannot be done now; the decision does not
// change any more. To lay out is to make steps of it, with the edges that order them. To
// explain is to say what needs no step. At last the plan records what happens to each object
// (objects.go). Only there is it decided whether a container counts as replaced.
//
// It is pure: it reads no clock, file, socket or random number, and where it ranges over a map the
// result does not depend on the order, so that the same input gives the same bytes.
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
// Where podctl decides otherwise on purpose, the rule is in docs/differences.md and
// the function says so.
package plan
