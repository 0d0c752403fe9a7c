package membership

import "k8s.io/apimachinery/pkg/types"

// Seen are the uids that an API server has. An object that does not exist has none.
type Seen struct {
	Node, Service types.UID
	// Hidden is set if the cluster does not allow a node to read the Service.
	Hidden bool
}

// Verdict is whose API server answers.
type Verdict int

const (
	// Same is the cluster of the record, or any if nothing is recorded.
	Same Verdict = iota
	// Unknown is an API server that has not created the Service default/kubernetes yet. It does so when it starts.
	Unknown
	// Other is another cluster.
	Other
)

// Judge compares what an API server has with the record. r may be nil. If only the Node differs, a user has deleted it
// in the same cluster. If the Service is hidden, the Node alone does not show that, and the cluster counts as the same.
func Judge(r *Record, seen Seen) Verdict {
	switch {
	case r == nil || r.UID == "" || r.Service == "":
		return Same
	case r.UID == seen.Node || r.Service == seen.Service || seen.Hidden:
		return Same
	case seen.Service == "":
		return Unknown
	}
	return Other
}
