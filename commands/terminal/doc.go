// Package terminal is what a command has of the world around it, and how it writes to it: the
// streams, the clock and the environment of the process; lines one at a time, colours, a
// spinner, tables and documents; text of others made safe to print. It knows no pod and no
// flag.
package terminal
