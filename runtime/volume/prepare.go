package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/podctl/podctl/podspec"
)

// Prepare makes a volume ready to be mounted: it creates and mounts missing parts, writes content, and checks a
// hostPath. It may be called again at any time. It then updates content, also while containers use it, and leaves a
// complete volume unchanged. After a failure it removes a volume of the pod that did not exist before. Paths created on
// the host and the directory of a claim stay, because other pods may already use them.
func Prepare(ctx context.Context, c Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m, err := c.find(name)
	if err == nil {
		err = m.prepare(ctx)
	}
	if err != nil {
		return prepareError(shownName(m, name), err)
	}
	return nil
}

func (m *mounter) prepare(ctx context.Context) error {
	switch vol := m.vol; {
	case m.isLocal():
		return localDir{m}.prepare()
	case vol.HostPath != nil:
		return prepareHostPath(vol)
	case vol.Image != nil:
		return nil
	case vol.PersistentVolumeClaim != nil:
		return claimDir{m.Context, m.claim(vol)}.prepare(ctx)
	case vol.EmptyDir != nil:
		return m.prepareEmptyDir()
	case podspec.HasContent(vol.Volume):
		return m.prepareContent()
	}
	return &UnsupportedError{Path: m.vol.Path}
}

// prepareEmptyDir creates an empty directory. It does not change a complete one, whose owners and modes now belong to
// the pod.
func (m *mounter) prepareEmptyDir() error {
	ready, err := m.ready()
	if err != nil || ready {
		return err
	}
	marker, err := m.marker()
	if err == nil {
		err = marker.clear()
	}
	if err != nil {
		return err
	}
	path, err := m.path()
	if err != nil {
		return err
	}
	_, before := os.Lstat(path)
	err = m.makeEmptyDir(path)
	// An existing directory may have files of the pod, even if it was not complete.
	if err != nil && errors.Is(before, fs.ErrNotExist) {
		return errors.Join(err, m.tearDown())
	}
	return err
}

func (m *mounter) makeEmptyDir(path string) error {
	if err := m.makeMedium(); err != nil {
		return err
	}
	dir, err := m.Pod.Open(path)
	if err != nil {
		return err
	}
	if err = errors.Join(m.giveToPod(dir), dir.Close()); err != nil {
		return err
	}
	return m.complete()
}

// prepareContent prepares a volume whose content podctl writes. It computes the content before it creates anything.
func (m *mounter) prepareContent() error {
	files, err := collector{m}.content()
	if err != nil {
		return err
	}
	before, err := m.ready()
	if err != nil {
		return err
	}
	if err = m.makeContent(files); err != nil && !before {
		return errors.Join(err, m.tearDown())
	}
	return err
}

func (m *mounter) makeContent(files map[string]File) error {
	if err := m.makeMedium(); err != nil {
		return err
	}
	w, err := m.openWriter()
	if err != nil {
		return err
	}
	defer w.close()
	if err := m.makeNested(); err != nil {
		return err
	}
	if err := w.write(files); err != nil {
		return err
	}
	return m.complete()
}

// complete does the steps after the content, and marks the volume as complete.
func (m *mounter) complete() error {
	if m.propagates() {
		path, err := m.path()
		if err == nil {
			err = share(path)
		}
		if err != nil {
			return err
		}
	}
	marker, err := m.marker()
	if err != nil {
		return err
	}
	return marker.set()
}

// openWriter opens the volume's directory for writing its content.
func (m *mounter) openWriter() (*writer, error) {
	path, err := m.path()
	if err != nil {
		return nil, err
	}
	dir, err := m.Pod.Open(path)
	if err != nil {
		return nil, err
	}
	w := &writer{dir: dir, group: m.fsGroup(), nested: map[string]bool{}}
	for _, mount := range nestedMounts(m.Desired.Pod, m.vol.Name) {
		first, _, _ := strings.Cut(mount, "/")
		w.nested[first] = true
	}
	return w, nil
}

// makeNested creates the mount points of other volumes in this one. Mount points may lie among the content, so it
// follows links, but not out of the volume.
func (m *mounter) makeNested() error {
	nested := nestedMounts(m.Desired.Pod, m.vol.Name)
	if len(nested) == 0 {
		return nil
	}
	path, err := m.path()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	return errors.Join(makeNestedDirs(root, nested), root.Close())
}
