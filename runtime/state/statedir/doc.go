// Package statedir opens the state directory and its files. It checks once that only root and the user of the process
// can change the directory or its parents. From then on it reaches everything below from the open directory. It also
// checks names that become part of a path, and the log directories.
//
// The input is a path. The results are open directories and contents of files, or the reason why they are not trusted.
// The package does not interpret the files.
package statedir
