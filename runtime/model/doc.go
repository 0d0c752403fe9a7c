// Package model has the values shared by the planner, the checkpoint on disk and the snapshot: the name of a pod, its
// observed state, and podctl's record of it between two passes.
//
// The package has only values, and rules about a single value, such as how a restart delay grows or when a run of a
// probe counts. Because of it nothing on disk depends on the planner.
package model
