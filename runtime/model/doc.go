// Package model has the values that the planner, the checkpoint on disk and the
// snapshot share: which pod is meant, what was observed of it, and what podctl
// remembers of it between two passes.
//
// In: nothing but values. Out: values, and rules about one value alone, such as how a restart delay
// grows or when a run of a probe counts. Nothing on disk depends on the planner.
package model
