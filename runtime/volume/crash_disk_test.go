//go:build !e2e

package volume

// bindAll binds nothing: that needs root.
func bindAll(Context) error { return nil }
