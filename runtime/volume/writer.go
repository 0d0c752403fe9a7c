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

// The names of the kubelet's scheme (AtomicWriter): files lie in a directory
// named by the time, ..data points to it, and what containers see are links
// through ..data. Swapping that one link changes all files at once.
const (
	hidden      = ".."
	dataLink    = "..data"
	dataLinkNew = "..data_tmp"
	dataFormat  = "..2006_01_02_15_04_05"
)

// writer keeps the content of one volume, in the volume's directory. What a privileged
// container has put there is not followed, waited for or believed.
type writer struct {
	dir   *safefs.Dir
	group *int64
	// nested are the names at the top of the volume at or below which other volumes are
	// mounted.
	nested map[string]bool
}

func (w *writer) close() { _ = w.dir.Close() }

// write makes the volume hold exactly these files, for whoever reads it all old
// or all new. Content that is the same is not written again. What a writer left
// that was killed goes.
func (w *writer) write(files map[string]File) error {
	current, sound, err := w.current()
	if err != nil {
		return err
	}
	if !sound || current == nil || Digest(current) != Digest(files) {
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
		return errors.Join(err, w.dir.RemoveAll(name)) // A full disk must not stay full of this.
	}
	return nil
}

// fill writes the files into a directory that nobody sees yet.
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

// contentDirMode is the mode of directories among the content: all may pass.
const contentDirMode fs.FileMode = 0o755

// swap points ..data to a directory, in one step unless there is a directory in its place.
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

// newName is a name for new content that nothing has.
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

// writeFile writes one file and the directories above it.
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
	return errors.Join(err, f.Chmod(file.Mode.Perm()), f.Close())
}

// giveToGroup gives everything in the volume to the pod's group, before it is
// seen.
func (w *writer) giveToGroup() error {
	if w.group == nil {
		return nil
	}
	return applyGroup(w.dir, int(*w.group), readOnlyBits)
}
