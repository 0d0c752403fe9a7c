// Package selection finds the pods that a command works on, by its arguments and flags:
// manifests are loaded, names are looked up among the pods that podctl applied or that a
// snapshot has. It also goes through several pods, concurrently or one by one. It changes
// nothing.
package selection
