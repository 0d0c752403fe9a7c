// Package executor executes a plan. No other code carries out the steps of a plan.
//
// The input is a plan, with the input and the snapshot it was made from. The output is an Outcome, events during the
// execution, and podctl's record of the pod. The executor makes no decisions: if the actual state differs from the
// plan, it returns a *StateChangedError, and the caller makes another plan.
//
//	execution.go    the parts of one execution, and the action of each step
//	schedule.go     the order of steps, the effect of a failure on others
//	prepare.go      cgroup, volumes, images, sandbox
//	check.go        checks before anything is stopped
//	start.go        containers: create, start, hooks, resources
//	stop.go         containers: hooks, order, grace period
//	remove.go       records with their files
//	inputs.go       contents of the CRI messages of containers
//	checkpoint.go   records before and after the steps
//	notes.go        records that steps add
//	report.go       events to the caller and to the pod's history
package executor
