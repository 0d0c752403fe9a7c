// Package planfile makes plans that can be saved, and makes a saved plan again.
//
// In: the planner's input, and for a saved plan what was read from its file. Out: a plan
// with the digests of what was wanted and of what was read of the world, and with both as
// its basis if they shall be kept; or what changed since a plan was saved.
//
// It is pure. It imports plan and what that imports, and nothing of podctl that touches the
// world. A file is data: the steps of a plan that is executed come from the planner, and
// what the file has of them only says which.
package planfile
