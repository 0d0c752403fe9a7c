// Package node has the commands for the private containerd: podctl node up, down and status.
package node
