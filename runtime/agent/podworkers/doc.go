// Package podworkers decides when each pod gets a pass, and its kind.
//
// Its inputs are the pods that sources want (Update, Remove), events of pods (Wake), the results of passes (Done), and
// the time. Next returns the passes to begin, the passes to cut short, and the time of the next call. The package is
// pkg/kubelet/pod_workers.go as a value: it has no clock, no goroutine and no lock, and does not depend on the runtime.
// The plan of a pass decides what the pass does.
package podworkers
