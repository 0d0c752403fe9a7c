// Package interact has the commands that work inside running pods: exec, attach, cp, port-forward and debug. A command
// finds its pod with package selection, and connects the user's streams, files or ports to it through the engine.
package interact
