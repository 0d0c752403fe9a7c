// Package inspect has the commands that look at pods: get, describe, events, logs, top and
// probe. A command finds its pods (package selection), asks the engine, and prints the answer
// (package view, or a file with the command's name in front).
package inspect
