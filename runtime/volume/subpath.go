package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
)

// PrepareSubPath binds one path inside a volume to a separate place and returns that place. expanded is the mount's
// subPath, or its subPathExpr with all variables expanded. A path that does not exist is created as a directory.
//
// PrepareSubPath opens the path without leaving the volume, and binds the open handle, not the name. Replacing a
// directory with a link in between therefore has no effect (kubelet: doBindSubPath). Links inside the volume may be
// relative, or absolute if they lead back into it.
func PrepareSubPath(c Context, container podspec.ContainerRef, index int, expanded string) (string, error) {
	m := &container.VolumeMounts[index]
	target, err := c.prepareSubPath(container.Name, m, index, expanded)
	return target, subPathError(container, index, expanded, err)
}

// subPathError returns the kubelet's message with its field path before it and the cause after it.
func subPathError(container podspec.ContainerRef, index int, expanded string, err error) error {
	if err == nil {
		return nil
	}
	text := fmt.Sprintf("failed to prepare subPath for volumeMount %q of container %q",
		container.VolumeMounts[index].Name, container.Name)
	return &model.KubeletError{
		Err:  fmt.Errorf("%s.volumeMounts[%d]: %s: %q: %w", container.Path, index, text, expanded, err),
		Text: text,
	}
}

// CheckSubPath returns the error that PrepareSubPath would return, as far as the volume's current content shows it. It
// changes nothing. Without an error it returns the path that would be bound, which need not exist.
func CheckSubPath(c Context, container podspec.ContainerRef, index int, expanded string) (string, error) {
	found, err := c.checkSubPath(container.VolumeMounts[index].Name, expanded)
	return found, subPathError(container, index, expanded, err)
}

func (c Context) checkSubPath(name, expanded string) (string, error) {
	if err := checkSubPath(expanded); err != nil {
		return "", err
	}
	found, err := c.find(name)
	if err != nil {
		return "", err
	}
	volume, err := found.path()
	if err != nil {
		return "", err
	}
	made := filepath.Join(volume, expanded)
	base, err := filepath.EvalSymlinks(volume)
	if err != nil {
		// It does not exist yet, or podctl may not read it.
		return made, nil //nolint:nilerr // an unreadable volume is not an error
	}
	there, missing, err := resolve(base, expanded)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return made, nil
	case err != nil:
		return "", err
	case len(missing) > 0:
		return made, nil
	}
	return filepath.Join(base, there), nil
}

func (c Context) prepareSubPath(container string, m *v1.VolumeMount, index int, expanded string) (string, error) {
	if err := checkSubPath(expanded); err != nil {
		return "", err
	}
	found, err := c.find(m.Name)
	if err != nil {
		return "", err
	}
	base, err := found.path()
	if err != nil {
		return "", err
	}
	if base == "" {
		return "", &UnsupportedError{Path: found.vol.Path}
	}
	target, err := c.Pod.SubPath(m.Name, container, index)
	if err != nil {
		return "", err
	}
	source, err := openSubPath(base, expanded)
	if err != nil {
		return "", err
	}
	if err = errors.Join(bindTarget{c.Pod, target}.bind(source), source.Close()); err != nil {
		return "", err
	}
	if mountPropagates(m) {
		err = makeShared(target)
	}
	return target, err
}

func checkSubPath(sub string) error {
	switch {
	case sub == "":
		return errors.New("it is empty")
	case path.IsAbs(sub):
		return errors.New("it must not be an absolute path")
	case slices.Contains(strings.Split(sub, "/"), ".."):
		return errors.New("it must not contain '..'")
	case strings.Contains(sub, "\x00"):
		return errors.New("it must not contain a null character")
	}
	return nil
}

// openSubPath opens a path below base with O_PATH, and creates missing directories.
func openSubPath(volume, sub string) (*os.File, error) {
	base, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return nil, err
	}
	root, err := safefs.Follow(base)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	there, missing, err := resolve(base, sub)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		// An existing path may lead through links of other users. Missing directories are not created behind such
		// links.
		way, err := safefs.OpenDir(volume)
		if err != nil {
			return nil, err
		}
		defer way.Close() //nolint:errcheck // A handle on a directory.
		return makeMissing(way, elements(there), missing)
	}
	return makeMissing(root, elements(there), missing)
}

// maxAppearances limits the retries after a directory has appeared during the search. Otherwise a container that
// repeatedly creates and removes it could block podctl.
const maxAppearances = 10

// resolve follows the links of a path below base, as far as the path exists. It returns the target relative to base and
// without links, and the missing directories. The path may change at any time, so the caller must open it without
// following links out of the volume.
func resolve(base, sub string) (there string, missing []string, err error) {
	parts := strings.Split(path.Clean(sub), "/")
	for n, appeared := len(parts), 0; ; n-- {
		existing := filepath.Join(base, filepath.Join(parts[:n]...))
		target, err := filepath.EvalSymlinks(existing)
		if err == nil {
			there, err = inside(base, target)
			return there, parts[n:], err
		}
		if n == 0 || !errors.Is(err, fs.ErrNotExist) {
			// The volume itself may have been removed meanwhile.
			return "", nil, err
		}
		info, err := os.Lstat(existing)
		switch {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0, appeared == maxAppearances:
			return "", nil, errors.New("a symbolic link in it has no target")
		default:
			// Another container of the pod, which starts at the same time, has just created it.
			appeared++
			n++
		}
	}
}

// inside returns target relative to base, or an error if it lies outside.
func inside(base, target string) (string, error) {
	there, err := filepath.Rel(base, target)
	if err != nil || !filepath.IsLocal(there) {
		return "", errors.New("it leads out of the volume")
	}
	return there, nil
}
