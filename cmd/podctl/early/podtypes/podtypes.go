// Package podtypes makes the JSON libraries acquainted with the types of a pod beside the
// initialisation of the packages that come after k8s.io/api/core/v1. They look at a type
// when they first meet it, which for a pod, with all that is in it, takes a tenth of a plan.
package podtypes

import (
	stdjson "encoding/json"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
)

func init() { //nolint:gochecknoinits // it is of use only beside the initialisation of other packages
	// Other commands gain nothing that can be measured, or share the processor with it.
	if slices.ContainsFunc(os.Args[1:], func(word string) bool { return word == "apply" || word == "plan" || word == "run" }) {
		go meet()
	}
}

// meet has no use for what comes out of it: the libraries remember the types.
func meet() {
	pod := &v1.Pod{}
	_ = json.UnmarshalCaseSensitivePreserveInts([]byte("{}"), pod)
	_, _ = stdjson.Marshal(pod)
}
