package model

import "testing"

// TestExitText checks that exit codes of signals have a name, and that others are numbers.
func TestExitText(t *testing.T) {
	for code, want := range map[int32]string{
		0:   "0",
		1:   "1",
		128: "128",
		137: "137 (SIGKILL)",
		143: "143 (SIGTERM)",
		139: "139 (SIGSEGV)",
		255: "255",
	} {
		if got := ExitText(code); got != want {
			t.Errorf("%d: %q, want %q", code, got, want)
		}
	}
}
