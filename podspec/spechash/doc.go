// Package spechash hashes the parts of a pod that require a new container or a new sandbox. An edit of other parts does
// not change the hash, so it does not affect running containers.
//
// The input is a pod with its objects. The results are hashes and the projections they are computed from. A projection
// has the fields that the class replace or sandbox of package fields lists, without the defaults of the API. In it,
// values of ConfigMaps are resolved, and digests replace the values of Secrets. A changed hash restarts containers, so
// the tests pin the hashes of fixed manifests.
package spechash
