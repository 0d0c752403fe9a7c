// Package control has the commands below `podctl agent`: they show and change an agent that runs. The program of a
// node, podctl-node, does not contain them.
package control
