// Package early is initialised before most other packages of podctl: Go initialises
// packages that are ready in the order of their import paths, and those of Kubernetes
// (k8s.io/…) come after this one.
package early

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to five times of what is in use before it is collected.
// The initialisation of the libraries and most commands then need no collection at all,
// which is a tenth of what a plan takes; the smallest heap that is collected has 16 MiB.
const gcPercent = 400

func init() { //nolint:gochecknoinits // it has to come before the initialisation of other packages
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
