// Package logfile reads the log of one run of a container: the current file, and rotated and compressed ones. The
// container may have the directory of its log mounted. Therefore the package follows no links in it, unlike the
// kubelet's library, and reads only regular files, and it reads the file that it has checked. It refuses a file that
// would fill the memory or the disk, or that never ends.
//
// The input is the path of a log, the options, and a function that reports whether the container still runs. The
// results are lines to two writers. The package does not query a runtime and does not know pods.
package logfile
