// Package podtypes fills the type caches of the JSON libraries with the types of a pod, while packages after
// k8s.io/api/core/v1 are being initialised. The only input is the command line, and there is no result. Measured on two
// cores in alternating runs: a plan of five containers takes 0.95 times as long as without it (median of 1400 pairs).
// The same call at the beginning of main is too late and has no effect.
package podtypes

import (
	stdjson "encoding/json"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
)

func init() { //nolint:gochecknoinits // it is of use only beside the initialisation of other packages
	// For other commands there is no measurable gain, or they need the processor themselves.
	gains := func(word string) bool { return word == "apply" || word == "plan" || word == "run" }
	if slices.ContainsFunc(os.Args[1:], gains) {
		go meet()
	}
}

// meet discards the results: the libraries cache the types.
func meet() {
	pod := &v1.Pod{}
	_ = json.UnmarshalCaseSensitivePreserveInts([]byte("{}"), pod)
	_, _ = stdjson.Marshal(pod)
}
