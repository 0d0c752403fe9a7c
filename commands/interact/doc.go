// Package interact has the commands that work inside running pods: exec, attach, cp,
// port-forward and debug. A command finds its pod (package selection) and connects the user's
// streams, files or ports with it by the engine.
package interact
