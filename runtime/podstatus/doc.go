// Package podstatus derives the state of a pod at one moment, and reports it as a kubelet would.
//
// The input is the desired pod, its observed state, and the time. The output is a v1.PodStatus and the facts behind it:
// the records by name, the phase, the results of probes, the active restart delays and the fault of the sandbox.
//
// The package is pure: it reads no clock, file, socket or random number. Of podctl's own packages it imports only
// podspec and model. The planner decides based on this state. Package podstatus does not know plans.
//
// # Where a rule is
//
//	kubelet                                    here
//	getPhase                                   phase.go
//	conditions                                 conditions.go
//	convertToAPIContainerStatuses              containers.go, resources.go
//	ShouldContainerBeRestarted                 restart.go
//	ShouldAllContainersRestart                 restart.go, reset.go
//	doBackOff                                  delay.go
//	PodSandboxChanged                          sandbox.go
//	observed generations, resize conditions    cluster.go
package podstatus
