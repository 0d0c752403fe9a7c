// Package logfile reads what a runtime has written of one run of a container: the file that
// is being written, and those that were rotated away before, compressed ones too. The container
// may have the directory of its log mounted, so that no link in it is followed, only regular
// files are read, and what is checked is what is read. A file that would fill memory or the disk,
// or never ends, is refused.
//
// In come the path of a log, what of it is wanted, and a function that reports whether the
// container still runs; out go lines to two writers. It asks no runtime and knows no pods.
package logfile
