// Package podlogs manages the log files of pods, also of deleted ones, and the links to them for log shippers.
// Containers that ship logs may have write access, so the package follows no links below the log root.
//
// The input is the log root and the name of a pod. The results are paths, open directories, and logs moved or removed.
// The package reads no logs (runtime/logfile).
package podlogs
