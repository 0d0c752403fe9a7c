// Package exit maps the errors of a command to one exit code and one error. It prints nothing, and does not depend on
// any command.
package exit
