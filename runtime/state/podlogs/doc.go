// Package podlogs has the log files of pods, of those too that were deleted, and the links to them for log shippers.
// Containers that ship logs may be able to write there: no link below the log root is followed.
//
// In: the log root and the name of a pod. Out: paths, open directories, logs moved and removed. It reads no log
// (runtime/logfile).
package podlogs
