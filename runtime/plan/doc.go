// Package plan decides what one sync pass would do to a pod, and why.
//
// It is pure: Make takes values and returns a value. It reads no clock, file,
// socket or random number, and where it ranges over a map the result does not
// depend on the order, so that the same input gives the same bytes. Whatever a
// pass does to the world is a Step of the plan; `podctl plan` prints the steps and
// `podctl apply` executes the very same ones.
//
// # Where a rule is
//
//	kubelet                                    here
//	computePodActions                          decide.go
//	podSandboxChanged                          sandbox.go
//	computeInitContainerActions                init.go
//	the loop over regular containers           regular.go
//	ShouldContainerBeRestarted                 restart.go
//	ShouldAllContainersRestart                 restartall.go
//	computePodResizeAction                     resize.go
//	doBackOff                                  backoff.go, hold.go
//	prober worker (thresholds)                 probe.go
//	SyncPod (order, failures)                  steps.go, start.go, stop.go
//	killContainer (grace), termination order   stop.go
//	container and sandbox garbage collection   cleanup.go
//	getPhase, conditions, container statuses   phase.go, status.go
//
// Where podctl decides otherwise on purpose, the rule is in docs/design.md and
// the function says so.
package plan
