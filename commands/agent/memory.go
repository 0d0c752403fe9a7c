package agent

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap of an agent grow to twice of what is in use before it is collected. The start of
// podctl collects later (package early): that is right for a command that ends soon.
const gcPercent = 100

// collectOften begins to collect garbage as what stays for long does. GOGC in the environment rules.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
