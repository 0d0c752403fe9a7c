// Package inspect has the commands that look at pods: get, describe, events, logs, top, probe and explain. A command
// finds its pods with package selection and queries the engine. Package view formats the result, or a file that begins
// with the name of the command.
package inspect
