// Package api connects podctl with the agent: documents over a unix socket in the state directory, which only its owner
// can use.
//
// The server answers for a Backend. The client needs the path of the socket and returns the agent's answers.
package api
