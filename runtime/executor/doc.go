// Package executor carries out a plan: the only place where a plan meets the world.
//
// In: a plan, with the input and the snapshot it was made of. Out: an Outcome, events while it
// goes on, and what podctl remembers of the pod. It never chooses: when the world is not as
// the plan says, it ends with a *SurpriseError, and its caller makes another plan.
//
//	execution.go    the parts of one execution, and what a step does
//	schedule.go     the order of steps, what a failure means for the others
//	prepare.go      cgroup, volumes, images, sandbox
//	check.go        proofs before anything is stopped
//	start.go        containers: create, start, hooks, resources
//	stop.go         containers: hooks, order, grace period
//	remove.go       records with their files
//	inputs.go       what the CRI messages of containers are made of
//	checkpoint.go   what is written down before and after
//	notes.go        what steps write down of their work
//	report.go       events to the caller and to the pod's history
package executor
