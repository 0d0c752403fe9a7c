// Package commandstest runs command lines in tests of commands, without a runtime or with one in memory. Tests pass the
// main function to it, so that every package can use it without an import cycle.
package commandstest
