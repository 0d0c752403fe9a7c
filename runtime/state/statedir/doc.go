// Package statedir opens the state directory and the files in it. It checks once that nobody but root and the user of the
// process can change the directory or the way to it, and reaches everything below from the open directory. It also has the
// names that may become a part of a path, and the checks of the log directories.
//
// In: a path. Out: open directories, contents of files, or why they are not trusted. What the files mean is the caller's
// matter.
package statedir
