package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The names of the kubelet's scheme (AtomicWriter): files lie in a directory
// named by time, ..data points to it, and what containers see are links through
// ..data. Swapping that one link changes all files at once.
const (
	dataLink    = "..data"
	dataLinkNew = "..data_tmp"
)

// writeAtomically makes a directory hold exactly these files, for whoever reads
// it all old or all new. It returns whether anything had to change.
func writeAtomically(dir string, files payload) (bool, error) {
	current, err := readBack(dir)
	if err == nil && digestOf(current) == digestOf(files) && linksComplete(dir, files) {
		return false, nil
	}
	fresh, err := os.MkdirTemp(dir, time.Now().UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return false, err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return false, err
	}
	if err := writeFiles(fresh, files); err != nil {
		return false, errors.Join(err, os.RemoveAll(fresh))
	}
	if err := swap(dir, filepath.Base(fresh)); err != nil {
		return false, err
	}
	if err := relink(dir, files); err != nil {
		return false, err
	}
	return true, removeOld(dir, filepath.Base(fresh))
}

func writeFiles(dir string, files payload) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(files[path].mode).Perm()
		if err := os.WriteFile(full, files[path].data, mode); err != nil {
			return err
		}
		if err := os.Chmod(full, mode); err != nil {
			return err
		}
	}
	return nil
}

// swap points ..data to a new directory in one step.
func swap(dir, target string) error {
	link := filepath.Join(dir, dataLinkNew)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, link); err != nil {
		return err
	}
	return os.Rename(link, filepath.Join(dir, dataLink))
}

// tops are the first elements of the files' paths: what containers see.
func tops(files payload) []string {
	var names []string
	for path := range files {
		name, _, _ := strings.Cut(path, "/")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func linksComplete(dir string, files payload) bool {
	for _, name := range tops(files) {
		if target, err := os.Readlink(filepath.Join(dir, name)); err != nil || target != filepath.Join(dataLink, name) {
			return false
		}
	}
	return true
}

// relink makes the links that are missing and removes those of files that are
// gone.
func relink(dir string, files payload) error {
	wanted := tops(files)
	for _, name := range wanted {
		link := filepath.Join(dir, name)
		target := filepath.Join(dataLink, name)
		if have, err := os.Readlink(link); err == nil && have == target {
			continue
		}
		if err := os.RemoveAll(link); err != nil {
			return err
		}
		if err := os.Symlink(target, link); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.Type() == fs.ModeSymlink && !strings.HasPrefix(name, "..") && !slices.Contains(wanted, name) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeOld removes the directories of earlier content, also those that an
// interrupted write left.
func removeOld(dir, fresh string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() && strings.HasPrefix(name, "..") && name != fresh {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readBack reads what ..data points to.
func readBack(dir string) (payload, error) {
	target, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		return nil, fmt.Errorf("reading the volume's content: %w", err)
	}
	root := filepath.Join(dir, filepath.Base(target))
	files := payload{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		files[rel] = file{data, uint32(info.Mode().Perm())}
		return err
	})
	return files, err
}
