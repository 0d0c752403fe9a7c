// Package completion offers words for the command line to a shell. It uses only the checkpoints of applied pods and
// never queries the runtime, because the shell waits for it. On an error it offers nothing, because a message would be
// printed into the prompt.
//
// A command declares its arguments by its ValidArgsFunction: Manifests, Pods, Pod, Targets, PodThenContainer or a
// similar one. Flags complete by the type of their value (package flags) or by their name, see flag. A command whose
// flag has its own words registers Words.
package completion
