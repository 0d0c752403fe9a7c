// Package terminal connects a command to its environment: the streams, the clock and the variables of the process. It
// prints lines one at a time, colours, a spinner and tables, and makes text from other sources safe to print. It does
// not depend on pods or flags.
package terminal
