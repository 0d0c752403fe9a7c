// Package api is how podctl talks to the agent: documents over a unix socket in the state
// directory, which is for its owner alone.
//
// In: a Backend, or the path of a socket. Out: a server, or the agent's answers.
package api
