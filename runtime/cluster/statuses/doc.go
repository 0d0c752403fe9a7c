// Package statuses sends the status of pods to the API server, and deletes pods there after their end. It is the
// kubelet's status manager.
//
// Input are the status of each pod as podctl shows it, the watched copies of the pods, and marks of pods whose status
// may have changed. Output are requests: PATCH of a status, and the final DELETE of a pod. The package decides nothing
// about pods on this machine: it starts, stops and stores nothing, and changes no field of an object but its status.
//
// The upper half is pure: the same input gives the same bytes.
//
//	merge.go       podctl's status and the copy in the API → the status that the API must have
//	conditions.go  which conditions podctl owns, and the time of their last change
//	containers.go  statuses of containers: counts and ended containers never go back
//	phase.go       phases never go back, and a terminal phase waits for the last container
//	normalize.go   times in whole seconds, limits of messages
//	patch.go       two statuses → the strategic merge patch between them
//	decide.go      the state of a pod here and in the API → the next request, or none
//	retry.go       when a failed request is made again
//
// The lower half is the manager:
//
//	manager.go     settings, marks of other packages, and the summary
//	loop.go        the loop: when pods are observed, and the limit of requests at the same time
//	observe.go     reads the current statuses
//	request.go     one request and its result
//	client.go      requests through client-go
//
// A pod has at most one request in flight. Its result is the base of the next decision, so the newest status wins.
// Nothing is queued: the newest status of each pod is kept until the API has it.
//
// The API server may store a status differently, for example without the fields of a feature that it does not have.
// Such a status is sent once for each version of the pod. A DELETE without an answer is followed by a GET. An object
// with the grace period 0 gets no DELETE, because it waits for its finalizers.
package statuses
