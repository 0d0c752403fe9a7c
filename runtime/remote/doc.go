// Package remote carries streams between podctl's user and processes in containers, over
// the connections that a runtime opens for that: WebSocket or SPDY.
//
// In come the address of a stream, which the runtime gave, and readers and writers; out goes how
// the stream ended, as an error. It asks no runtime itself.
package remote
