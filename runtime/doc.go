// Package runtime is the CRI side of podctl: it connects to a container runtime,
// observes what runs there, executes plans, and reads logs.
//
// An Engine is one runtime together with podctl's state directory. Its verbs:
//
//	Plan     observe one pod and decide what a pass would do
//	Apply    one pass: lock, observe, decide, execute; a surprise makes a new plan
//	Wait     passes until the pod is started, ready or completed
//	Delete   the same path with nothing desired
//	Probe    ask the probes of a pod once, now, and remember the answers
//	Pods     the pods podctl applied, with their status
//	Logs     the logs of a container, over its restarts
//
// Why a step is in a plan is decided in runtime/plan; what a step sends is built
// in runtime/criconfig; what it does is in execute.go and the step_*.go files
// here. Every path on disk comes from runtime/state.
package runtime
