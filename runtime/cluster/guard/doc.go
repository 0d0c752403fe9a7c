// Package guard keeps a node from obeying another cluster: an API server that was set up again, or that has another
// address, must not end the pods of this machine.
//
// The input is the connection and the record of the last registration. Check and Confirm return an error if another
// cluster answers. Lists and watches do not begin then, so that pods and stored objects stay as they are. The decision
// is in package membership.
package guard
