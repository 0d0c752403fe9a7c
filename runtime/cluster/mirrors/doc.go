// Package mirrors shows pods of other sources than the API server in the cluster, as mirror pods (kubelet:
// tryReconcileMirrorPods).
//
// The input are the pods that the agent shows, the mirror pods of the API, and whether all sources were read. The
// output are requests: POST of a mirror pod, and DELETE of one that is outdated, has no pod, or is deleted by a user.
//
//	decide.go     pods and mirror pods → mirror pods to create and to delete; pure
//	mirror.go     a pod → its mirror pod
//	references.go a pod without the references that a node may not create
//	manager.go    the loop: when to decide, one request at a time, when to try again
//
// A mirror pod never changes. After an edit of the pod, it stays until no container of the earlier version runs, and
// another one takes its place. The package starts and stops nothing on this machine. Package statuses sends the status
// of mirror pods.
package mirrors
