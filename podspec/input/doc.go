// Package input reads what comes from outside: manifests from files, directories, standard
// input and URLs, each bounded in size and time. It also writes what was read into messages
// so that it stays in its line.
//
// In: names of sources. Out: their texts, or an error that says which one cannot be read and
// repeats no password. The package does not look into the texts, and imports nothing of
// podctl's.
package input
