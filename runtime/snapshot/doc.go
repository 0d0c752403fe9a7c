// Package snapshot holds observed states of pods as values: the raw data of the runtime and the disk, their translation
// for the planner, and their file format, from which the same plans can be made anywhere.
//
// A snapshot has one pod and all images of the runtime, so that an edited manifest can be planned without a runtime.
// Digests replace the values of Secrets, and give the same spec hash.
package snapshot
