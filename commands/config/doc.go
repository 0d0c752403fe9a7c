// Package config has the configuration of podctl: the flags of every command as plain data, and the sources of their
// values. The command line takes precedence over environment variables (PODCTL_*), and these over the configuration
// files of the user and the system. The package opens no connections.
package config
