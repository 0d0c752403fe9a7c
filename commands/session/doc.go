// Package session is one call of podctl: its flags, its streams, and the connection to the
// container runtime, which is made when it is first asked for. Commands get a Session and
// take from it what they need. It knows no command.
package session
