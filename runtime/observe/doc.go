// Package observe reads the actual state: the records of a runtime, podctl's own files, and the machine. It changes
// nothing.
//
// The input is a pod's name and, if there is one, its manifest. The output is a snapshot.Pod, the input of a plan, or
// the status of many pods. Exits are ended processes that containerd reports before its CRI does.
package observe
