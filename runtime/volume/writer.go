package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// Names of the kubelet's scheme (AtomicWriter). Files lie in a directory named by the time, and ..data points to it.
// Containers see links through ..data, so replacing that one link changes all files at once.
const (
	hidden      = ".."
	dataLink    = "..data"
	dataLinkNew = "..data_tmp"
	dataFormat  = "..2006_01_02_15_04_05"
)

// writer writes the content of one volume into its directory. A privileged container may create any file there, so
// writer does not follow links, block on files or trust their content.
type writer struct {
	dir   *safefs.Dir
	group *int64
	// nested lists the names at the top of the volume at or below which other volumes are mounted.
	nested map[string]bool
}

func (w *writer) close() { _ = w.dir.Close() }

// write makes the volume contain exactly these files. Readers see either all old or all new files. write does not
// rewrite equal content, and removes the leftovers of a killed writer.
func (w *writer) write(files map[string]File) error {
	current, valid, err := w.current()
	if err != nil {
		return err
	}
	if !valid || current == nil || Digest(current) != Digest(files) {
		if err := w.replace(files); err != nil {
			return err
		}
	}
	return errors.Join(w.link(files), w.sweep())
}

// replace writes a new directory and points ..data to it.
func (w *writer) replace(files map[string]File) error {
	name, err := w.newName()
	if err != nil {
		return err
	}
	if err = w.fill(name, files); err == nil {
		err = w.swap(name)
	}
	if err != nil {
		return errors.Join(err, w.dir.RemoveAll(name)) // Free the space, which matters if the disk is full.
	}
	return nil
}

// fill writes the files into a directory that containers do not see yet.
func (w *writer) fill(name string, files map[string]File) error {
	dir, err := w.dir.Make(name, contentDirMode)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(dir, name, files[name]); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return w.giveToGroup()
}

// contentDirMode is the mode of content directories: all users may enter.
const contentDirMode fs.FileMode = 0o755

// swap points ..data to a directory. This is atomic unless a directory has the name ..data.
func (w *writer) swap(name string) error {
	if err := w.dir.RemoveAll(dataLinkNew); err != nil {
		return err
	}
	if err := w.dir.Symlink(name, dataLinkNew); err != nil {
		return err
	}
	err := w.dir.Replace(dataLinkNew, dataLink)
	if !errors.Is(err, unix.EISDIR) {
		return err
	}
	if err := w.dir.RemoveAll(dataLink); err != nil {
		return err
	}
	return w.dir.Replace(dataLinkNew, dataLink)
}

// newName returns an unused name for a content directory.
func (w *writer) newName() (string, error) {
	for {
		name := fmt.Sprintf("%s.%010d", time.Now().UTC().Format(dataFormat), rand.Uint32())
		_, err := w.dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// writeFile writes one file and creates its parent directories.
func writeFile(dir *safefs.Dir, name string, file File) error {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	sub, err := dir.MakeSub(contentDirMode, contentDirMode, parts[:last]...)
	if err != nil {
		return err
	}
	defer sub.Close() //nolint:errcheck // A handle on a directory.
	f, err := sub.Create(parts[last], 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(file.Data)
	if err == nil && file.GID >= 0 {
		err = f.Chown(-1, int(file.GID))
	}
	if err == nil && file.UID != 0 {
		err = f.Chown(int(file.UID), -1)
	}
	return errors.Join(err, f.Chmod(file.Mode.Perm()), f.Close())
}

// giveToGroup gives all content to the pod's group, before containers see it.
func (w *writer) giveToGroup() error {
	if w.group == nil {
		return nil
	}
	return applyGroup(w.dir, int(*w.group), readOnlyBits, depthMax)
}
