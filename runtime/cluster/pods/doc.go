// Package pods is the agent's source of pods from the API server: those whose spec.nodeName is the name of this node
// (kubelet: NewSourceApiserver).
//
// The input is one list and one watch. The output is a sources.Update for each change, and the newest copy of each pod
// for the packages that write to the API server. UIDs identify the pods. A pod that is being deleted is in
// Update.Ending with its grace period; a pod that is gone is not in the update. The package changes nothing, on the
// machine or in the cluster.
package pods
