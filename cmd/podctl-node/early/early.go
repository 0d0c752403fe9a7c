// Package early configures the memory management of podctl-node before most other packages are initialised, as package
// early of podctl does for commands that end soon. The only input is GOGC, and the package imports only the standard
// library.
package early

import (
	"os"
	goruntime "runtime"
	"runtime/debug"
)

// gcPercent keeps the heap small during the initialisation. What a collection frees later stays in parts of pages: with
// it, a node with ten pods has 1 MiB less, and its start takes 50 ms more of a processor (medians of four starts).
const gcPercent = 30

func init() { //nolint:gochecknoinits // it has to come before the initialisation of other packages
	// The program writes no memory profile. Its records would take memory.
	goruntime.MemProfileRate = 0
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
