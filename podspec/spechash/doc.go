// Package spechash hashes what only a new container, or a new sandbox, brings into force, so
// that an edit of anything else leaves what runs alone.
//
// In: a pod with its objects. Out: hashes, and the projections they are made of. A hash that
// changes restarts what runs: the tests hold the hashes of fixed manifests.
package spechash
