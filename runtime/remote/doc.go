// Package remote carries streams between podctl's user and processes in containers, over connections that a runtime
// opens: WebSocket or SPDY.
//
// The input is the address of a stream from the runtime, and readers and writers. The result is the end of the stream,
// as an error. The package does not query a runtime.
package remote
