package safefs

import (
	"errors"
	"os"
	"path/filepath"
)

// OpenRoot opens a directory like OpenDir, as an os.Root.
func OpenRoot(path string) (*os.Root, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, err := OpenDir(path)
	if err != nil {
		return nil, err
	}
	root, err := dir.Root()
	return root, errors.Join(err, dir.Close())
}
