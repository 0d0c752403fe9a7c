// Package logind delays a shutdown of the machine until its pods have stopped.
//
// In: a function that stops the pods, one that starts them again, and the time that they may take.
// Out: calls of these when systemd-logind says that the machine shuts down, or does not after all. It
// holds an inhibitor lock of the mode "delay" (systemd.io/INHIBITOR_LOCKS), as a kubelet does for its
// graceful node shutdown.
package logind
