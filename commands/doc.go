// Package commands defines the user interface: flags, tables, colours and exit codes. It builds the command tree.
//
// The command `podctl X` is in X.go, either here or in the package of its group: lifecycle (plan, apply, run, ...),
// inspect (get, describe, logs, ...), interact (exec, cp, ...), image and node. Variants of a command share a file:
// diff is in plan, scale in rollout, and the loading and saving of images in archive. A file that serves one command
// starts with the name of that command.
//
// Package program runs one command line. Code for all commands is in the packages below it, from the bottom up: exit
// (codes and errors), flags (values), terminal (streams), config (global flags), session (the connection), selection
// (which pods), completion and view (values as text).
//
// A command parses its arguments, calls runtime or podspec, and prints the result. It contains no other logic.
package commands
