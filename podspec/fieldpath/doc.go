// Package fieldpath reads and writes the paths of fields as the API machinery has them, for
// example spec.containers[0].image, and follows them through the Go types of the API.
//
// In: paths and types. Out: their parts.
package fieldpath
