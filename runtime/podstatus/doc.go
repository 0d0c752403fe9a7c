// Package podstatus says what is true of a pod at one moment, and reports it as a kubelet
// would.
//
// In: the pod as it is wanted, what was observed of it, and the time. Out: its records by
// name, its phase, which containers may run again, what its probes have found, which restart
// delays are in force, what is wrong with its sandbox; and all of it as a v1.PodStatus.
//
// It is pure: it reads no clock, file, socket or random number. Of podctl's own packages it
// imports podspec and model and no others. The planner decides from what is found here, and
// nothing here knows of plans.
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
package podstatus
