package safefs

import (
	"errors"
	"path/filepath"
)

// InDirOf does something with the name of a file in its directory, which it opens as OpenDir does.
func InDirOf(path string, work func(dir *Dir, name string) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	dir, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(work(dir, filepath.Base(path)), dir.Close())
}

// RemoveFile removes a file or link; one that is gone is no error.
func RemoveFile(path string) error {
	return IgnoreMissing(InDirOf(path, (*Dir).Remove))
}
