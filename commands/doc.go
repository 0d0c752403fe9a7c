// Package commands is everything a user sees: flags, tables, colours, exit
// codes. `podctl X` is X.go. A command parses, calls runtime or podspec, and
// prints; it decides nothing.
package commands
