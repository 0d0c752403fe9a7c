// Package daemon runs an agent as a process: alone on its runtime, with its sockets, its metrics, the Services of the machine, and
// systemd.
//
// In: Settings, which a command read from flags and files. Out: an agent that runs until its context ends. It connects the packages of
// runtime/agent with an Engine and decides nothing itself. It may not import commands.
package daemon
