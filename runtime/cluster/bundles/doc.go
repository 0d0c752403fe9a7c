// Package bundles provides the trust anchors of ClusterTrustBundles to projected volumes of pods of the API server
// (kubelet: clustertrustbundle).
//
// The input is a source of a volume, which names one bundle or selects those of a signer. The output is a ConfigMap
// with their certificates as PEM, without duplicates. One list and one watch of all bundles (shared.go) serve all pods.
// They run while a pod uses a bundle. merge.go selects and merges bundles; it has no clock, goroutine or connection.
package bundles
