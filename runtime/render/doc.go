// Package render shows the CRI messages of a pod without a runtime. It builds them like the executor, with placeholders
// for values that only a runtime knows.
package render
