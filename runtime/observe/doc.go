// Package observe looks at what is there: the records of a runtime, podctl's own files, and
// the machine. It changes nothing.
//
// In: a pod's name and, if there is one, its manifest. Out: a snapshot.Pod, the input of a plan, or
// the status of many pods. Exits are what containerd reports of ended processes before its CRI
// does.
package observe
