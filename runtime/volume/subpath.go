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

// PrepareSubPath binds one path inside a volume to a place of its own and
// returns that place. expanded is the mount's subPath, or its subPathExpr with
// all variables put in. A path that does not exist becomes a directory.
//
// The path is opened without leaving the volume, and what was opened is bound,
// not its name: whoever swaps a directory for a link meanwhile gains nothing
// (kubelet: doBindSubPath). Links inside the volume may be relative, or absolute
// as long as they lead back into it.
func PrepareSubPath(c Context, container podspec.ContainerRef, index int, expanded string) (string, error) {
	m := &container.VolumeMounts[index]
	target, err := c.prepareSubPath(container.Name, m, index, expanded)
	return target, subPathError(container, index, expanded, err)
}

// subPathError is the kubelet's sentence with its place before it and the cause behind it.
func subPathError(container podspec.ContainerRef, index int, expanded string, err error) error {
	if err == nil {
		return nil
	}
	text := fmt.Sprintf("failed to prepare subPath for volumeMount %q of container %q", container.VolumeMounts[index].Name, container.Name)
	return &model.KubeletError{Err: fmt.Errorf("%s.volumeMounts[%d]: %s: %q: %w", container.Path, index, text, expanded, err), Text: text}
}

// CheckSubPath says why PrepareSubPath would fail, as far as what lies in the volume now shows it,
// and changes nothing. Without an error it is the path that would be bound, which need not exist.
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
		// It is not there yet, or not podctl's to see.
		return made, nil //nolint:nilerr // What is not known is no reason.
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
		return "", &UnsupportedError{Path: found.at}
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

// openSubPath opens a path below base as a mere handle, and creates directories
// that are missing.
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
		// What exists is mounted as it is, links of others on the way included. Nothing is
		// made behind those.
		way, err := safefs.OpenDir(volume)
		if err != nil {
			return nil, err
		}
		defer way.Close() //nolint:errcheck // A handle on a directory.
		return makeMissing(way, elements(there), missing)
	}
	return makeMissing(root, elements(there), missing)
}

// maxAppearances is how often a directory may appear while it is looked for: a container that makes and removes
// it again and again does not keep podctl busy.
const maxAppearances = 10

// resolve follows the links of a path below base, as far as it exists. It says
// where that leads, relative to base and without links, and which directories
// are missing there. Nothing depends on the answer being true for long: what it
// names is opened without following links out of the volume.
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
			return "", nil, errors.New("a symbolic link in it leads nowhere")
		default:
			// Another container of the pod, which starts at the same time, has just made it.
			appeared++
			n++
		}
	}
}

// inside is a path relative to base, if it lies there.
func inside(base, target string) (string, error) {
	there, err := filepath.Rel(base, target)
	if err != nil || !filepath.IsLocal(there) {
		return "", errors.New("it leads out of the volume")
	}
	return there, nil
}
