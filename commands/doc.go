// Package commands is everything a user sees: flags, tables, colours, exit codes. It builds the
// tree of commands and runs one command line.
//
// `podctl X` is in X.go, here or in the package of its group: lifecycle (plan, apply, run, ...),
// inspect (get, describe, logs, ...), interact (exec, cp, ...), image and node. Commands that are
// variants of one job share a file (diff: plan; scale: rollout; load and save of images: archive).
// A file that serves one command has its name in front. What serves all of them is below, from the bottom:
// exit (codes and errors), flags (values), terminal (streams), config (global flags), session
// (the connection), selection (which pods), completion and view (values as text).
//
// A command parses, calls runtime or podspec, and prints. It decides nothing.
package commands
