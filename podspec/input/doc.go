// Package input reads what comes from outside: manifests from files, directories, standard input
// and URLs, each bounded in size and time.
//
// In: names of sources. Out: their texts, or an error that names the source and repeats no password.
// The package does not look into the texts.
package input
