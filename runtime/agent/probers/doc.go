// Package probers decides when each probe of each running container runs, and computes the verdicts from the results.
// It has a worker for each probe, as the kubelet does.
//
// Its inputs are the containers that a pass observed running, the time, and results. Its outputs are the probes to run,
// the time of the next call, and verdicts to record. It is a value: it reads no clock, starts no goroutine and takes no
// lock, so its caller uses it from one goroutine at a time. It runs no probe and writes nothing; runtime/probe does
// both. Only the first result and each change of a probe are stored. The counts in between are lost when the agent
// ends, as in a kubelet.
//
// All times are of one clock. The argument now must never go back, as readings of time.Now in one process do not. The
// times of containers and of records may be in the future. They delay no probe beyond its initial delay and its period.
//
// # Where a rule is
//
//	kubelet (pkg/kubelet/prober)               here
//	manager.AddPod, RemovePod, CleanupPods     set.go: Sync, Forget
//	manager.StopLivenessAndStartup             set.go: Sync, types
//	manager.UpdatePodStatus, manualTriggerCh   set.go: MakeDue
//	worker.run                                 set.go: spread; worker.go: wait, next
//	worker.doProbe                             set.go: Next, Done; model.ProbeRecord.Fold
package probers
