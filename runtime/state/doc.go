// Package state is podctl's memory on disk: every path, the lock, the journal,
// the log files.
//
// The layout below Layout.Root is that of a kubelet's root directory, so that
// `kubelet --root-dir` may point at it. Nothing else in podctl joins a path of
// podctl's own; docs/state.md lists every file.
//
// A name that becomes a part of a path is checked here (checkName), wherever it comes from: a
// journal may be older than what a manifest is refused for today. What is made, renamed or
// removed is so through an open directory (runtime/safefs).
//
// Whatever is written here gets its mode explicitly, so that the caller's umask
// neither opens nor closes anything.
package state
