// Package filecopy copies files and trees between two directories that do not trust each other. Below the two given
// names it follows no links, and opens every file relative to its directory. So a tree that changes during the copy
// cannot lead out of it.
//
// The input is open directories, names, tar archives and options. The results are files, tar archives, and errors that
// name the place.
package filecopy
