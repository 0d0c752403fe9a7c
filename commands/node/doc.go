// Package node has the commands on the private containerd: podctl node up, down and status.
package node
