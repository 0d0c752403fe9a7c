// Package state is podctl's memory on disk: every path, the locks, the checkpoints, the stored objects. The log files are
// in podlogs, the files of the state directory as such in statedir.
//
// A Layout says where things lie, and has what belongs to no pod: Pods (the lists of them), Claims,
// DigestKey, DeletedLogs and two locks. A Pod is the place of one pod: its directory and its lock.
// What is kept of it has a small type each, with the methods that read and change it: Checkpoint,
// History, Logs, TerminationLogs, IDs and CgroupMark. All of them are values, made anew where they
// are needed; nothing is opened before a method is called.
//
// The layout below Layout.Root is that of a kubelet's root directory, so that
// `kubelet --root-dir` may point at it. Nothing else in podctl joins a path of
// podctl's own; docs/state.md lists every file.
//
// A name that becomes a part of a path is checked here (statedir.CheckName), wherever it comes from: a
// checkpoint is a file that may have been edited. What is made, renamed or
// removed is so through an open directory (runtime/safefs).
//
// Whatever is written here gets its mode explicitly, so that the caller's umask
// neither opens nor closes anything.
package state
