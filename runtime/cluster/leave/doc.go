// Package leave ends the membership of a node in its cluster.
//
// The input is a client of the API server, the name of the Node, and the options of the user. The package cordons the
// Node and evicts its pods, as kubectl drain does. Then it deletes the Node and its other pods. choose.go decides what
// happens to each pod; drain.go makes the requests. A call that was interrupted can be repeated.
package leave
