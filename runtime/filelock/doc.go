// Package filelock implements locks between processes, so that only one podctl at a time works on a pod, a table or a
// node.
//
// The input is the path of the lock's file. The result is the lock, or a LockedError that names its holder.
package filelock
