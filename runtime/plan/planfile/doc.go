// Package planfile makes plans that can be saved, and repeats a saved plan.
//
// The input is the planner's input, and for a saved plan the contents of its file. The output is a plan with digests of
// the desired and the observed state, and with both as its basis if the options ask for it. For a saved plan it can
// also be a list of changes since it was saved.
//
// The package is pure. It imports plan and the imports of plan, and no package that changes the system. A file is only
// data: the executed steps come from the planner, and the file only selects them.
package planfile
