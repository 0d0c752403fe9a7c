// Package snapshot holds what was observed of pods, as values: what the runtime and the disk
// gave, before anything is made of it, its translation into the planner's words, and its
// form as a file, from which the same plans are made anywhere.
package snapshot
