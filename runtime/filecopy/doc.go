// Package filecopy copies files and trees between two directories that do not trust
// each other. Below the two names it is given it follows no link: everything is
// opened relative to the directory it was found in, so that a tree that changes
// while it is copied cannot lead out of it.
//
// In come open directories, names, tar archives and options; out go files, tar archives on disk and errors that name the
// place.
package filecopy
