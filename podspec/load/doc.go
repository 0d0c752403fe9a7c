// Package load builds pods from manifests. It decodes documents strictly, sets the API server's defaults, validates
// with the API server's rules, and reports for every field whether it is supported.
//
// The input is texts from podspec/input. The result is a Manifest with all pods, problems and notes at once. Only Load
// reads sources.
package load
