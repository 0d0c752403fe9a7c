// Package nofollow opens files in directories that somebody else can write to: a program in a
// container that has the directory mounted. What comes in is a path or an open directory; what
// goes out is an open file, which is the very file that was looked at. It reads and writes
// nothing, and knows nothing of pods.
package nofollow
