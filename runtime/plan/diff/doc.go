// Package diff compares two versions of a definition field by field.
//
// The input is two JSON trees. The output is the paths that differ, with their values except those of Secrets, and the
// number of equal fields. The package is pure. Of podctl's own packages it imports only podspec, which marks digests of
// secret values.
package diff
