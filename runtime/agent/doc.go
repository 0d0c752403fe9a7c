// Package agent keeps pods as their manifests say until it is stopped: the kubelet's syncLoop
// around the same pass that podctl apply makes.
//
// In: sources, the state directory and the runtime. Out: passes, and what it shows of them. It
// decides when a pod is looked at, and never what is done to it: that is the plan of the pass.
//
//	agent.go     the agent, and what tells it of changes
//	state.go     the state that only the loop changes, and the inbox through which other goroutines reach it
//	listeners.go who is notified of what the agent does
//	loop.go      the loop
//	keeper.go    gives the workers the pods that are wanted, as package owner decides
//	passes.go    one pass, and what it came to
//	ending.go    all pods are stopped when the machine shuts down
//	records.go   the pods that have a checkpoint
//	reader.go    when checkpoints are read
//	status.go    what it shows
//	pods.go      the pods that it shows
//	measures.go  what it counts
//
// Its rooms: podworkers (when each pod gets a pass), sources (what is wanted), owner (which source a
// pod belongs to), declared (what sources have beside pods), probers (when each probe is asked), pleg
// (which pods something happened to), housekeeping (what pods left goes), api (the socket), podsapi
// (the kubelet's local Pods API), metrics.
package agent
