// Package snapshot holds observed states of pods as values: the raw data of the runtime and the disk, their translation
// for the planner, and their file format, from which the same plans can be made anywhere.
package snapshot
