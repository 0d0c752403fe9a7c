// Package fieldpath reads and writes field paths in the form of the API machinery, for example
// spec.containers[0].image. It also follows them through the Go types of the API.
package fieldpath
