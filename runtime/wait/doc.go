// Package wait makes passes until a pod has reached a goal, cannot reach it any more, or the
// time is over. Await only looks.
//
// In: a manifest and a Goal. Out: the last Outcome, a *BlockedError, a *FailedError or a *TimeoutError. Between
// passes the pod's lock is free.
package wait
