// Package fields has one table of all fields of v1.Pod: whether podctl supports a field, and the effect of an edit on a
// running pod. The loader, the hashes, the planner and docs/fields.md use this table.
//
// The input is the path of a field. The result is its row. The only decision about a single pod is which edits apply to
// it.
package fields
