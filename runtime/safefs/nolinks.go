package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// errOthersLink reports a link that may be a trap.
var errOthersLink = errors.New("it is a link that another user made, or could have made: podctl does not follow it")

// OpenDirNoLinks opens the directory at an absolute path. The last elements must not be links (ErrLink), because they
// belong to one pod and a container may have them mounted. Above them a link is followed only if it and its directory
// belong to root or podctl's user. The directory must not be writable for all.
func OpenDirNoLinks(path string, last int) (*Dir, error) {
	dir, err := walkToDir(path, policy{follow: func(w *walker, link *place) error {
		var err error
		switch at := w.at.stat; {
		case len(w.rest) <= last:
			err = ErrLink
		case isForeign(link.stat.Uid), isForeign(at.Uid), at.Mode&writableByAll != 0:
			err = errOthersLink
		default:
			return nil
		}
		return fmt.Errorf("%s: %w", w.rest[0], err)
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, Cause(err))
	}
	return dir, nil
}

// OpenFileNoLinks opens the regular file at an absolute path for reading, with the rule of OpenDirNoLinks. Other files
// are ErrNotRegular. The caller closes the file.
func OpenFileNoLinks(path string, last int) (f *os.File, info fs.FileInfo, err error) {
	dir, err := OpenDirNoLinks(filepath.Dir(path), last-1)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	f, info, err = dir.OpenRegular(filepath.Base(path))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, Cause(err))
	}
	return f, info, nil
}
