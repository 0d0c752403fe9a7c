package model

import "fmt"

// signalBase is added by a runtime to the number of the signal that ended a process.
const signalBase = 128

// SignalOf returns the name of the signal of an exit code; empty for a code that is not of a signal that usually ends
// processes.
func SignalOf(code int32) string {
	return map[int32]string{
		1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
		11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 31: "SIGSYS",
	}[code-signalBase]
}

// ExitText returns an exit code with its signal: 137 (SIGKILL).
func ExitText(code int32) string {
	if signal := SignalOf(code); signal != "" {
		return fmt.Sprintf("%d (%s)", code, signal)
	}
	return fmt.Sprint(code)
}
