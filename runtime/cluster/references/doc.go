// Package references provides the ConfigMaps and Secrets of the API server to the passes of its pods (kubelet:
// util/manager, the watch-based manager).
//
// The input is the pods of passes. The output is, for each object that they name, one watch of just this object, the
// pod with its current objects, and a copy on disk for a start without the API server. A pod whose volumes have a
// changed object, and a pod that waits for one, is woken; its pass makes the change.
//
// A table (table.go) records which pods name which objects. It has no clock, goroutine or connection. A node may not
// list the objects of a namespace, so every request has the name of one object.
//
// A token of a service account (package tokens) is such an object, too: a Secret whose name has the uid of its pod.
//
// Services and RuntimeClasses are different: a node may list all of them, and the result is one file for each kind
// (collection.go), with the variables of containers and the handlers of classes.
package references
