// Package completion says what a shell offers for the words of a command line. It answers from
// the checkpoints of applied pods alone: a shell waits for it, so no runtime is asked, and an
// error offers nothing instead of writing into the prompt.
//
// A command names what its arguments are: its ValidArgsFunction is Manifests, Pods, Pod,
// Targets, PodThenContainer or one beside them. Flags complete by their kind of value (package
// flags) or by their name, see flag; a command whose flag has words of its own registers Words.
package completion
