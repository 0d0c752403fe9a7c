// Package session accesses running pods: logs, commands, streams, ports, files and usage.
//
// Its inputs are a manifest and the name of a container. It returns streams and values. It makes no decisions, and
// changes nothing except through the user's commands in the container.
package session
