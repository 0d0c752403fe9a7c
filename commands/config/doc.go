// Package config is the configuration of podctl: the flags that every command has, as plain
// data, and where their values come from. The command line comes before environment variables
// (PODCTL_*), and these before the user's and the system's configuration file. It connects to
// nothing.
package config
