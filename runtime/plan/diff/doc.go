// Package diff says field by field what differs between two versions of a definition.
//
// In: two JSON trees. Out: the paths that differ with their values, those of Secrets left
// out, and how many are the same. It is pure. Of podctl's own packages it imports podspec,
// which knows what stands for a secret value, and no others.
package diff
