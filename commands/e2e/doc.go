// Package e2e holds the tests that run podctl from the outside: on a private containerd, with
// the build tag e2e, and the crash matrix, which also runs against a runtime in memory without
// it. It has no code of the product, and nothing imports it.
package e2e
