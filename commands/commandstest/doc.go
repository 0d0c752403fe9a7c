// Package commandstest runs command lines in tests of commands, without a runtime or with one in
// memory. It is given the main function, so that the tests of every package can use it.
package commandstest
