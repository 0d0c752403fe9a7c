// Package exit says how a command ends: with which exit code, and with which of several
// errors. Errors come in, an exit code and one error go out. It prints nothing and knows no
// command.
package exit
