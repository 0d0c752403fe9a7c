package agent

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// startPercent and gcPercent are by how much the heap of an agent may grow beyond what is in use before it is
	// collected, while it starts and afterwards. Other commands let it grow more (package early), as they end soon;
	// in an agent what has once grown stays in pieces.
	startPercent, gcPercent = 100, 50
	// startLimit is how long the start may take: an agent whose sources cannot be read is not ready.
	startLimit = time.Minute
)

// settle returns what ends the start of an agent, in which it looks at all pods at once. From then on memory is
// collected as what stays needs it, and what the start took is given back. GOGC in the environment rules.
func settle() func() {
	collectAt(startPercent)
	end := sync.OnceFunc(func() {
		collectAt(gcPercent)
		debug.FreeOSMemory()
	})
	time.AfterFunc(startLimit, end)
	return end
}

func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
