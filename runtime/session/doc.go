// Package session reaches into pods that run: logs, commands, streams, ports, files and usage.
//
// In: a manifest and the name of a container. Out: streams and values. Nothing is decided and
// nothing is changed but what the user does inside.
package session
