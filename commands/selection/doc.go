// Package selection finds the pods that a command works on, by its arguments and flags. It loads manifests, and looks
// up names among the applied pods or those of a snapshot. It also runs functions over several pods, concurrently or one
// by one. It changes nothing.
package selection
