package volume

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/safefs"
)

// visible returns the names at the top of the volume: the first elements of the files' paths.
func visible(files map[string]File) []string {
	names := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		names[first] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// linked reports whether containers see exactly these files and nothing else.
func (w *writer) linked(files map[string]File) (bool, error) {
	missing, stale, err := w.compareLinks(files)
	if err != nil {
		return false, err
	}
	left, err := w.leftovers()
	return len(missing)+len(stale)+len(left) == 0, err
}

// link creates missing links, and then removes the links of deleted files.
func (w *writer) link(files map[string]File) error {
	missing, stale, err := w.compareLinks(files)
	if err != nil {
		return err
	}
	for _, name := range missing {
		if err := w.dir.RemoveAll(name); err != nil {
			return err
		}
		if err := w.dir.Symlink(path.Join(dataLink, name), name); err != nil {
			return err
		}
	}
	for _, name := range stale {
		if err := w.dir.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// compareLinks returns the missing links and the stale names. A directory may be the mount point of another volume,
// also for running containers of an earlier manifest. It therefore stays, unless it hides a file, or contains a file
// where this manifest mounts nothing.
func (w *writer) compareLinks(files map[string]File) (missing, stale []string, err error) {
	entries, err := w.dir.Entries()
	if err != nil {
		return nil, nil, err
	}
	wanted := visible(files)
	valid := map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, hidden) {
			continue
		}
		target, _ := w.dir.Readlink(name)
		valid[name] = (entry.IsDir() && w.nested[name]) || target == path.Join(dataLink, name)
		if slices.Contains(wanted, name) {
			continue
		}
		point := entry.IsDir()
		if point && !w.nested[name] {
			if point, err = isMountPoint(w.dir, name, 0); err != nil {
				return nil, nil, err
			}
		}
		if !point {
			stale = append(stale, name)
		}
	}
	for _, name := range wanted {
		if !valid[name] {
			missing = append(missing, name)
		}
	}
	return missing, stale, nil
}

// isMountPoint reports whether a directory may be one that makeNested created: it contains only directories.
func isMountPoint(above *safefs.Dir, name string, depth int) (only bool, err error) {
	dir, err := above.Open(name)
	if err != nil {
		return false, ignoreChange(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	entries, err := dir.Entries()
	if err != nil || depth > depthMax {
		return false, err
	}
	for _, entry := range entries {
		if only, err := isMountPoint(dir, entry.Name(), depth+1); err != nil || !only {
			return false, err
		}
	}
	return true, nil
}

// sweep removes the directories of earlier and of unfinished content.
func (w *writer) sweep() error {
	left, err := w.leftovers()
	for _, name := range left {
		err = errors.Join(err, w.dir.RemoveAll(name))
	}
	return err
}

// leftovers returns the hidden names that are not in use, which a killed writer left.
func (w *writer) leftovers() ([]string, error) {
	now, _, err := w.dataDir()
	if err != nil {
		return nil, err
	}
	entries, err := w.dir.Entries()
	var left []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, hidden) && name != dataLink && name != now {
			left = append(left, name)
		}
	}
	return left, err
}
