package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Prepare makes a volume ready to be mounted: it creates and mounts what is
// missing, writes content, and checks a hostPath. It may be called again at any
// time: content is brought up to date, also while it is in use, and what is
// complete stays as it is. When it fails, a volume of the pod's own that was not
// there before is not there after. What was made on the host stays, and so does
// the directory of a claim: other pods may have found it.
func Prepare(ctx context.Context, c Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m, err := c.find(name)
	if err == nil {
		err = m.prepare(ctx)
	}
	if err != nil {
		return prepareError(name, err)
	}
	return nil
}

func (m *mounter) prepare(ctx context.Context) error {
	switch vol := m.vol; {
	case vol.HostPath != nil:
		return prepareHostPath(vol.HostPath, m.at)
	case vol.Image != nil:
		return nil
	case vol.PersistentVolumeClaim != nil:
		return claimDir{m.Context, m.claim(vol)}.prepare(ctx)
	case vol.EmptyDir != nil:
		return m.prepareEmptyDir()
	case HasContent(vol):
		return m.prepareContent()
	}
	return &UnsupportedError{Path: m.at}
}

// prepareEmptyDir makes an empty directory. One that is complete is left alone,
// owners and modes included: they are the pod's by now.
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
	// One that was there, though not complete, may hold what the pod wrote.
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

// prepareContent makes a volume that podctl fills. What it shall hold is
// computed before anything is made.
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

// complete does what comes after the content, and says that nothing is missing.
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

// openWriter opens the directory of the volume for its content.
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

// makeNested creates the mount points of other volumes in this one. Links are followed, as
// mount points may lie among the content, but not out of the volume.
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
