// Package session holds the state of one podctl command: its flags, its streams, and the connection to the container
// runtime, which is opened at first use. It does not depend on any command.
package session
