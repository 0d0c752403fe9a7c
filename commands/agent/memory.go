package agent

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// gcPercent lets the heap of an agent grow to twice of what is in use before it is collected.
	gcPercent = 100
	// startLimit is how long the start may take: an agent whose sources cannot be read is not ready.
	startLimit = time.Minute
)

// settle returns what ends the start of an agent. Until then garbage is collected seldom (package early),
// which is right for what ends soon, or looks at all pods at once. From then on it is collected as what stays
// needs it, and the memory that the start took is given back. GOGC in the environment rules.
func settle() func() {
	end := sync.OnceFunc(func() {
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(gcPercent)
		}
		debug.FreeOSMemory()
	})
	time.AfterFunc(startLimit, end)
	return end
}
