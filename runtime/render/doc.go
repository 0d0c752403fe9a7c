// Package render shows the CRI messages of a pod without a runtime. It builds them as the
// executor does, with placeholders for what only a runtime can tell.
package render
