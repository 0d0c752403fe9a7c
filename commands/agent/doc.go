// Package agent has the command `podctl agent`, and `agent leave`, which also needs the program podctl-node.
package agent
