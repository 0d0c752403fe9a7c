package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
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

// writer keeps the content of one volume. All paths are opened through the
// volume's directory, which they cannot leave.
type writer struct {
	root  *os.Root
	group *int64
}

func openWriter(c Context, vol *v1.Volume) (*writer, error) {
	root, err := os.OpenRoot(c.Path(vol))
	if err != nil {
		return nil, err
	}
	return &writer{root: root, group: c.fsGroup()}, nil
}

func (w *writer) close() { _ = w.root.Close() }

// write makes the volume hold exactly these files, for whoever reads it all old
// or all new. Content that is the same is not written again. What a writer left
// that was killed goes.
func (w *writer) write(files map[string]File) error {
	current, err := w.current()
	if err != nil {
		return err
	}
	if current == nil || Digest(current) != Digest(files) {
		if err := w.replace(files); err != nil {
			return err
		}
	}
	return errors.Join(w.link(files), w.sweep())
}

// replace writes a new directory and points ..data to it.
func (w *writer) replace(files map[string]File) error {
	dir, err := w.newDir()
	if err == nil {
		err = w.fill(dir, files)
	}
	if err == nil {
		err = w.swap(dir)
	}
	if err != nil && dir != "" {
		return errors.Join(err, w.root.RemoveAll(dir)) // A full disk must not stay full of this.
	}
	return err
}

// fill writes the files into a directory that nobody sees yet.
func (w *writer) fill(dir string, files map[string]File) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.writeFile(path.Join(dir, name), files[name]); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return w.giveToGroup()
}

// swap points ..data to a directory, in one step.
func (w *writer) swap(dir string) error {
	if err := w.removeAny(dataLinkNew); err != nil {
		return err
	}
	if err := w.root.Symlink(dir, dataLinkNew); err != nil {
		return err
	}
	return w.root.Rename(dataLinkNew, dataLink)
}

func (w *writer) newDir() (string, error) {
	for {
		name := fmt.Sprintf("%s.%010d", time.Now().UTC().Format(dataFormat), rand.Uint32())
		err := w.root.Mkdir(name, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		return name, w.root.Chmod(name, 0o755)
	}
}

func (w *writer) writeFile(name string, file File) error {
	if err := w.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	f, err := w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(file.Data)
	if err == nil && file.GID >= 0 {
		err = f.Chown(-1, int(file.GID))
	}
	return errors.Join(err, f.Chmod(file.Mode.Perm()), f.Close())
}

// makeDirs creates the directories above a file, open for all to pass.
func (w *writer) makeDirs(dir string) error {
	if err := w.root.Mkdir(dir, 0o755); err == nil {
		return w.root.Chmod(dir, 0o755)
	} else if errors.Is(err, fs.ErrExist) {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.makeDirs(path.Dir(dir)); err != nil {
		return err
	}
	return w.makeDirs(dir)
}

// giveToGroup gives everything in the volume to the pod's group, before it is
// seen.
func (w *writer) giveToGroup() error {
	if w.group == nil {
		return nil
	}
	return applyGroup(w.root, int(*w.group), readOnlyBits)
}

// current is the content that ..data points to; nil when there is none.
func (w *writer) current() (map[string]File, error) {
	dir, err := w.root.Readlink(dataLink)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !fs.ValidPath(dir)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files := map[string]File{}
	err = fs.WalkDir(w.root.FS(), dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := w.readFile(name, entry)
		files[strings.TrimPrefix(name, dir+"/")] = f
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// readFile reads a file back. What is no regular file was not written here; it
// has a mode that no content has, and so differs from all.
func (w *writer) readFile(name string, entry fs.DirEntry) (File, error) {
	info, err := entry.Info()
	if err != nil || !info.Mode().IsRegular() {
		return File{GID: -2}, err
	}
	data, err := w.root.ReadFile(name)
	f := File{Data: data, Mode: info.Mode().Perm(), GID: -1}
	if w.group != nil {
		f.GID = groupOf(info)
	}
	return f, err
}
