// Package devices gives the devices of plugins to containers, as a kubelet's device manager does.
//
// Device plugins register on a socket and report their devices. From these, from the record of allocated devices and
// from the pods of the node, the package chooses devices for a pod (pure), allocates them by calls to the plugin, and
// returns what a plugin adds to the message of a container. It also reports the resources that a Node shows. The agent
// runs one Manager. Passes of other processes reach it by the agent's socket.
//
// It may not import packages that make passes.
package devices
