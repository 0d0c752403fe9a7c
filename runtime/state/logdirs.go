package state

import (
	"io/fs"
	"path/filepath"

	"github.com/podctl/podctl/runtime/safefs"
)

// makeLogDir opens a log directory, and makes it and those above it if need be.
func makeLogDir(path string, above, perm fs.FileMode) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.MakeAll(path, above, perm)
}

// openLogDir opens a log directory.
func openLogDir(path string) (*safefs.Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return safefs.OpenDir(path)
}
