// Package state holds podctl's state on disk: all paths, locks, checkpoints and stored objects. The log files are in
// podlogs. The functions for files of the state directory are in statedir.
//
// A Layout defines the paths. It has everything that belongs to no single pod: Pods (the lists of pods), Claims,
// DigestKey, DeletedLogs and two locks. A Pod has the directory and the lock of one pod. Each kind of its data has a
// small type with methods that read and change it: Checkpoint, History, Logs, TerminationLogs, IDs and CgroupMark. All
// of them are values that are created where needed; no file is opened before a method is called.
//
// The layout below Layout.Root is that of a kubelet's root directory, so `kubelet --root-dir` may point at it. No other
// package builds paths of podctl's own; docs/state.md lists every file.
//
// The package checks every name that becomes part of a path (statedir.CheckName), even from a checkpoint, because a
// user may have edited it. It creates, renames and removes files through an open directory (runtime/safefs).
//
// The package sets the mode of every file explicitly, so the caller's umask has no effect.
package state
