// Package podspec is what the user wants: it reads manifests (file, directory,
// standard input, URL), decodes them strictly, fills in the API server's own
// defaults, validates with the API server's own rules, and classifies every
// field of v1.Pod: honoured, without effect here, or refused.
//
// It is a leaf. It knows YAML and the Kubernetes API types, and nothing of a
// container runtime, a state directory or a terminal.
package podspec
