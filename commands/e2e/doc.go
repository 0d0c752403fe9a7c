// Package e2e has tests that run the program podctl. With the build tag e2e, they run it on a private containerd. The
// crash matrix also runs without the tag, on a runtime in memory. The package has no code of the product, and no
// package imports it.
package e2e
