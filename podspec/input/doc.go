// Package input reads external data: manifests from files, directories, standard input and URLs, with limits for size
// and time.
//
// The input is the names of sources. The results are their texts, or an error that names the source without passwords.
// The package does not interpret the texts.
package input
