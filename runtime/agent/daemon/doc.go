// Package daemon runs an agent as a process: alone on its runtime, with its sockets, its metrics, the Services of the
// machine, and systemd.
//
// Its input is Settings, which a command reads from flags and files. It connects the packages of runtime/agent with an
// Engine, and runs them until the context ends. It makes no decisions itself. It may not import commands.
package daemon
