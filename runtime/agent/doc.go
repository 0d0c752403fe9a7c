// Package agent keeps pods in the state of their manifests until it is stopped. It is the kubelet's syncLoop around the
// same pass that podctl apply makes.
//
// Its inputs are the sources, the state directory and the runtime. Its outputs are passes and their status. It decides
// when a pod gets a pass. The plan of the pass decides what is done to the pod.
//
//	agent.go      the agent, and the goroutines that notify it of changes
//	state.go      the state that only the loop changes, and the inbox through which other goroutines reach it
//	listeners.go  the notifications about what the agent does
//	loop.go       the loop
//	reconciler.go passes the wanted pods to the workers, as package owner decides
//	passes.go     one pass and its result
//	ending.go     stops all pods when the machine shuts down
//	records.go    the pods that have a checkpoint
//	reader.go     when checkpoints are read
//	status.go     the status
//	pods.go       the list of pods
//	measures.go   the metrics of passes
//	facts.go      the facts of the node for readers outside the loop
//
// Its packages: podworkers (when each pod gets a pass), sources (the wanted pods), owner (which source a pod belongs
// to), declared (the other objects of sources), probers (when each probe runs), pleg (events of the runtime),
// housekeeping (removal of leftovers), api (the socket), podsapi (the kubelet's local Pods API), metrics.
package agent
