package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// File is one file of a volume's content, as it lies on disk.
type File struct {
	Data []byte
	// Mode holds the permission bits, including those that fsGroup adds.
	Mode fs.FileMode
	// GID is the group the file belongs to; -1 when nobody asked for one.
	GID int64
}

// collector computes what a volume shall hold, from the manifest alone.
type collector struct{ *mounter }

// content is what the volume shall hold, by path relative to the volume. What is referred to and
// not there is an *UnresolvedError; several are joined. It is nil for a volume whose content
// podctl does not write.
func (c collector) content() (map[string]File, error) {
	if !HasContent(c.vol) {
		return nil, nil
	}
	found, err := c.sources()
	if err != nil {
		return nil, err
	}
	files := make(map[string]File, len(found))
	for name, f := range found {
		if err := checkPath(name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.at, err)
		}
		files[path.Clean(name)] = c.owned(f)
	}
	if err := checkTree(files); err != nil {
		return nil, fmt.Errorf("%s: %w", c.at, err)
	}
	return files, nil
}

// ContentHas reports whether what podctl is to write into a volume has a file at a path, or
// directories.
func ContentHas(c Context, name, at string) (file, dir bool) {
	m, err := c.find(name)
	if err != nil {
		return false, false
	}
	files, err := collector{m}.content()
	if err != nil {
		return false, false
	}
	at = path.Clean(at)
	for found := range files {
		file, dir = file || found == at, dir || strings.HasPrefix(found, at+"/")
	}
	return file, dir
}

// checkTree refuses a file that others lie below.
func checkTree(files map[string]File) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := files[dir]; ok {
				return fmt.Errorf("path %q lies below %q, which is a file of the volume: not a directory", name, dir)
			}
		}
	}
	return nil
}

// owned gives a file to the pod's group: readable for it, as content is not the
// pod's to change (kubelet: SetVolumeOwnership on a read-only volume).
func (c collector) owned(f File) File {
	f.Mode, f.GID = f.Mode.Perm(), -1
	if group := c.fsGroup(); group != nil {
		f.Mode, f.GID = f.Mode|readOnlyBits, *group
	}
	return f
}

func (c collector) sources() (map[string]File, error) {
	vol, at := c.vol, c.at
	switch {
	case vol.ConfigMap != nil:
		s := vol.ConfigMap
		return c.configMap(s.Name, selection{at + ".configMap", "name", s.Items, s.DefaultMode, s.Optional})
	case vol.Secret != nil:
		s := vol.Secret
		return c.secret(s.SecretName, selection{at + ".secret", "secretName", s.Items, s.DefaultMode, s.Optional})
	case vol.DownwardAPI != nil:
		return c.downwardAPI(vol.DownwardAPI.Items, vol.DownwardAPI.DefaultMode, at+".downwardAPI")
	case vol.Projected != nil:
		return c.projected(vol.Projected, at+".projected")
	}
	return nil, &UnsupportedError{Path: at}
}

// projected merges the sources in order: a later one replaces files of the same
// path.
func (c collector) projected(projected *v1.ProjectedVolumeSource, at string) (map[string]File, error) {
	files := map[string]File{}
	var errs []error
	for i := range projected.Sources {
		found, err := c.projection(&projected.Sources[i], projected.DefaultMode, fmt.Sprintf("%s.sources[%d]", at, i))
		errs = append(errs, err)
		maps.Copy(files, found)
	}
	return files, errors.Join(errs...)
}

func (c collector) projection(source *v1.VolumeProjection, mode *int32, at string) (map[string]File, error) {
	switch {
	case source.ConfigMap != nil:
		s := source.ConfigMap
		return c.configMap(s.Name, selection{at + ".configMap", "name", s.Items, mode, s.Optional})
	case source.Secret != nil:
		s := source.Secret
		return c.secret(s.Name, selection{at + ".secret", "name", s.Items, mode, s.Optional})
	case source.DownwardAPI != nil:
		return c.downwardAPI(source.DownwardAPI.Items, mode, at+".downwardAPI")
	}
	return nil, &UnsupportedError{Path: at}
}

// The bounds of the kernel on names and paths.
const (
	nameMax = 255
	pathMax = 4096
)

// checkPath refuses a path that would leave the volume or meet the names of the
// atomic writer (kubelet: AtomicWriter.validatePath).
func checkPath(name string) error {
	parts := strings.Split(name, "/")
	switch {
	case name == "" || path.IsAbs(name) || path.Clean(name) == ".":
		return fmt.Errorf("path %q is not the path of a file below the volume", name)
	case len(name) > pathMax:
		return fmt.Errorf("path %.40q… has %d characters, which is more than %d", name, len(name), pathMax)
	case strings.HasPrefix(path.Clean(name), ".."):
		return fmt.Errorf("path %q begins with two dots", name)
	}
	for _, part := range parts {
		if part == ".." || strings.Contains(part, "\x00") {
			return fmt.Errorf("path %q has an element %q", name, part)
		}
		if len(part) > nameMax {
			return fmt.Errorf("path %.40q… has a name of %d characters, which is more than %d", name, len(part), nameMax)
		}
	}
	return nil
}

// UnresolvedError says that a volume takes something from an object that no
// manifest supplies, and that is not optional.
type UnresolvedError struct {
	// Path is the field that refers to it.
	Path string
	// Kind and Name are the object; Key is what is missing in it, empty when the
	// object itself is missing.
	Kind, Name, Key string
}

// Error names what is missing and says what to do.
func (e *UnresolvedError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("%s: %s %q has no key %q: add it, or set optional: true", e.Path, e.Kind, e.Name, e.Key)
	}
	return fmt.Sprintf("%s: no manifest has a %s %q: add one, or set optional: true", e.Path, e.Kind, e.Name)
}

// UnsupportedError says that podctl cannot provide a volume, or a part of it.
type UnsupportedError struct {
	// Path is the field that asks for it.
	Path string
}

// Error names the field.
func (e *UnsupportedError) Error() string {
	return e.Path + ": podctl cannot provide this kind of volume"
}
