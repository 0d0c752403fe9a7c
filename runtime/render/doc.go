// Package render shows the CRI messages of a pod without a runtime. It builds them like the executor, with placeholders
// for values that only a runtime knows.
//
// A rendered manifest has gone through the API server's internal form and its create strategy. An applied pod keeps the
// form in which it was written, because its spec hash must not change.
package render
