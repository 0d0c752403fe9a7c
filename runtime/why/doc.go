// Package why explains the state of a pod: why each container runs, waits, has ended or was stopped, what would change
// that, and what the next pass does.
//
// The input is values that other packages have: the pod with its status, its checkpoint and history, the plan of the
// next pass, and the pod in the status of the agent. The output is a value, which commands/view prints. The package
// decides nothing and reads nothing. The plan has the reason of each decision, and the history has those of earlier
// passes.
package why
