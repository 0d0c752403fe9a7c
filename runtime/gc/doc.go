// Package gc finds what podctl made and nobody needs any more, and removes it: records,
// sandboxes, files, logs, events and claims.
//
// In: what the runtime and the disk have. Out: a list of Garbage. Each piece is looked at again
// under its pod's lock before it is removed. What bears no mark of podctl is never touched.
package gc
