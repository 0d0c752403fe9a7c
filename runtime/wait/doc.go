// Package wait makes passes until a pod has reached a goal, cannot reach it any more, or a timeout. Await makes no
// passes.
//
// The input is a manifest and a Goal. The output is the last Outcome, a *BlockedError, a *FailedError or a
// *TimeoutError. The pod's lock is free between passes.
package wait
