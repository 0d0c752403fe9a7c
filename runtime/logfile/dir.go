package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// ownLevels is the number of elements at the end of a log's path that belong to one pod (kubelet:
// BuildContainerLogsDirectory): its directory, that of the container, and the file. For containers of podctl the path
// is built from names, and for others the runtime reports it. A link is never followed in these elements. The elements
// above, the log root, may include a link of root.
const ownLevels = 3

// rotatedMax limits the rotated files of one log; a runtime keeps five.
const rotatedMax = 1000

// logDir is the open directory of a log.
type logDir struct {
	*safefs.Dir
	// path is the directory's path, and base the name of the current file.
	path, base string
}

func openDir(path string) (*logDir, error) {
	dir, err := safefs.OpenDirNoLinks(filepath.Dir(path), ownLevels-1)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of a log: %w", err)
	}
	return &logDir{Dir: dir, path: filepath.Dir(path), base: filepath.Base(path)}, nil
}

// open opens a regular file of the log. A rotated file may have been compressed since it was listed.
func (d *logDir) open(name string) (*source, error) {
	s, err := d.openAs(name)
	if errors.Is(err, fs.ErrNotExist) && name != d.base && !strings.HasSuffix(name, Compressed) {
		return d.openAs(name + Compressed)
	}
	return s, err
}

func (d *logDir) openAs(name string) (*source, error) {
	s := &source{path: filepath.Join(d.path, name), zip: strings.HasSuffix(name, Compressed), left: -1}
	var err error
	if s.file, s.info, err = d.OpenRegular(name); err != nil {
		return nil, s.wrap(safefs.Cause(err))
	}
	return s, nil
}

// aside is a rotated file.
type aside struct {
	name string
	info fs.FileInfo
}

// rotated returns the regular rotated files, the oldest first. If there are too many, it returns only the newest and an
// error.
func (d *logDir) rotated() ([]aside, error) {
	names, err := asideNames(d.Dir, d.base)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.path, err)
	}
	tooMany := len(names) > rotatedMax
	var files []aside
	for _, name := range names[max(len(names)-rotatedMax, 0):] {
		if slices.Contains(names, name+Compressed) || strings.HasSuffix(name, compressing) {
			continue // A file that was just compressed exists twice for a moment.
		}
		info, err := d.Lstat(name)
		if safefs.IgnoreMissing(err) != nil {
			return nil, fmt.Errorf("reading %s: %w", filepath.Join(d.path, name), safefs.Cause(err))
		}
		if err == nil && info.Mode().IsRegular() {
			files = append(files, aside{name: name, info: info})
		}
	}
	if tooMany {
		return files, fmt.Errorf("reading %s: more than %d files are named %s.…: remove those that no runtime wrote",
			d.path, rotatedMax, d.base)
	}
	return files, nil
}

// asideNames returns the names of a log's rotated files, the oldest first, in the kubelet's format: the log's name, a
// dot and the time, and .gz. A name that ends in .tmp is being compressed.
func asideNames(dir *safefs.Dir, log string) ([]string, error) {
	entries, err := dir.Entries()
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), log+".") {
			names = append(names, entry.Name())
		}
	}
	return names, err
}
