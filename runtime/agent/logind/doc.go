// Package logind delays a shutdown of the machine until its pods have stopped.
//
// Its inputs are a function that stops the pods, one that starts them again, and the time that they may take. It calls
// them when systemd-logind reports that a shutdown begins or was canceled. It holds an inhibitor lock of the mode
// "delay" (systemd.io/INHIBITOR_LOCKS), as a kubelet does for its graceful node shutdown.
package logind
