// Package fields has one table of all fields of v1.Pod: whether podctl honours a field, and
// what an edit of it does to a pod that runs. The loader, the hashes, the planner and
// docs/fields.md read the same table.
//
// In: the path of a field. Out: its row. The package decides nothing about one pod, except which
// edits of it count.
package fields
