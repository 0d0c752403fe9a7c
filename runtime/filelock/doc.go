// Package filelock has locks between processes, by which one podctl at a time works on a pod, a
// table or a node.
//
// In: the path of the lock's file. Out: the lock, or a LockedError that names who holds it.
package filelock
