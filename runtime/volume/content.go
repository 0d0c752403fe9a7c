package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// File is a file of a volume's content on disk.
type File struct {
	Data []byte
	// Mode holds the permission bits, including those that fsGroup adds.
	Mode fs.FileMode
	// GID is the group that owns the file, or -1 if none is requested.
	GID int64
	// UID is the user that owns the file, or 0 for podctl's own.
	UID int64
}

// collector computes the wanted content of a volume from the manifest alone.
type collector struct{ *mounter }

// content returns the wanted files of the volume by path relative to the volume, or nil if podctl does not write the
// content. A missing object or key is an *UnresolvedError; several are joined.
func (c collector) content() (map[string]File, error) {
	if !podspec.HasContent(c.vol.Volume) {
		return nil, nil
	}
	found, err := c.sources()
	if err != nil {
		return nil, err
	}
	files := make(map[string]File, len(found))
	for name, f := range found {
		if err := checkPath(name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.vol.Path, err)
		}
		files[path.Clean(name)] = c.owned(f)
	}
	if err := checkTree(files); err != nil {
		return nil, fmt.Errorf("%s: %w", c.vol.Path, err)
	}
	return files, nil
}

// ContentHas reports whether podctl writes a file at a path of the volume, or files below it.
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

// checkTree refuses a file whose path is also a directory of other files.
func checkTree(files map[string]File) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := files[dir]; ok {
				return fmt.Errorf("path %q is below %q, which is a file of the volume: not a directory", name, dir)
			}
		}
	}
	return nil
}

// owned gives a file to the pod's group, which may only read it: the pod must not change the content (kubelet:
// SetVolumeOwnership on a read-only volume).
func (c collector) owned(f File) File {
	f.Mode, f.GID = f.Mode.Perm(), -1
	if f.UID == int64(os.Geteuid()) {
		f.UID = 0
	}
	if group := c.fsGroup(); group != nil {
		f.Mode, f.GID = f.Mode|readOnlyBits, *group
	}
	return f
}

func (c collector) sources() (map[string]File, error) {
	vol, at := c.vol, c.vol.Path
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

// projected merges the sources in order: a later source replaces files with the same path.
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
	case source.ServiceAccountToken != nil:
		return c.token(source.ServiceAccountToken, mode, at+".serviceAccountToken")
	case source.ClusterTrustBundle != nil:
		return c.trustBundle(source.ClusterTrustBundle, mode, at+".clusterTrustBundle")
	}
	return nil, &UnsupportedError{Path: at}
}

// Limits of the kernel for names and paths.
const (
	nameMax = 255
	pathMax = 4096
)

// checkPath refuses a path that leaves the volume or that collides with names of the atomic writer (kubelet:
// AtomicWriter.validatePath).
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
			return fmt.Errorf("path %.40q… has a name of %d characters, which is more than %d",
				name, len(part), nameMax)
		}
	}
	return nil
}

// UnresolvedError reports a reference to an object or key that is required, but that no manifest supplies.
type UnresolvedError struct {
	// Path is the field with the reference.
	Path string
	// Kind and Name identify the object. Key is the missing key, or empty if the object itself is missing.
	Kind, Name, Key string
}

// Error names the missing object or key and how to fix it.
func (e *UnresolvedError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("%s: %s %q has no key %q: add it, or set optional: true", e.Path, e.Kind, e.Name, e.Key)
	}
	return fmt.Sprintf("%s: no manifest has a %s %q: add one, or set optional: true", e.Path, e.Kind, e.Name)
}

// UnsupportedError reports a volume, or a part of one, that podctl cannot provide.
type UnsupportedError struct {
	// Path is the field that requests it.
	Path string
}

// Error names the field.
func (e *UnsupportedError) Error() string {
	return e.Path + ": podctl cannot provide this kind of volume"
}
