// Package flags has code for the command lines of several commands: types of flag values, and checks of arguments. It
// depends on neither pods nor runtime.
package flags
