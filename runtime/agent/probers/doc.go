// Package probers knows when each probe of each running container is asked, and what its answers
// come to: a worker for each probe, as the kubelet has them.
//
// In come containers that a pass saw running, the time, and answers; out go probes to ask, the
// moment to look again, and verdicts to write down. It is a value: it reads no clock, starts no
// goroutine and takes no lock, so its caller uses it from one goroutine at a time. It asks nobody
// and writes nothing; runtime/probe does both.
//
// All times are of one clock. Those that are given as now never go back, as readings of time.Now
// in one process do not; those of containers and of records may lie in the future, which delays no
// probe beyond its initial delay and its period.
//
// # Where a rule is
//
//	kubelet (pkg/kubelet/prober)               here
//	manager.AddPod, RemovePod, CleanupPods     set.go: Sync, Forget
//	manager.StopLivenessAndStartup             set.go: Sync, types
//	manager.UpdatePodStatus, manualTriggerCh   set.go: AskNow
//	worker.run                                 set.go: spread; worker.go: wait, next
//	worker.doProbe                             set.go: Next, Done; model.ProbeRecord.Fold
package probers
