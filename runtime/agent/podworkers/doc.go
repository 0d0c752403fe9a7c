// Package podworkers decides when each pod gets a pass, and what for.
//
// In: what sources want (Update, Remove), what wakes a pod (Wake), how passes ended (Done), and the
// time. Out: passes to begin, passes to cut short, and when to ask again (Next). It is the
// pkg/kubelet/pod_workers.go as a value: it has no clock, no goroutine and no lock, and knows
// nothing of the runtime. What a pass does is decided by the plan of that pass, not here.
package podworkers
