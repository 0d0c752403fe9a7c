package eviction

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/machine"
)

// Machine measures the available resources of the machine. It queries the runtime once. After that it only reads files.
type Machine struct {
	// NodeDirs are directories on the file systems of the node.
	NodeDirs []string
	// ImageFs returns the directory where the runtime stores images. It is empty if unknown.
	ImageFs func(context.Context) (string, error)
	// AllPods returns the cgroup of all pods and the limit of its memory in bytes, zero if unknown. It may be nil.
	AllPods func() (name string, memory int64)

	imageDir string
	known    bool
}

// Measure measures the machine. A value that cannot be measured is left out, and its error is returned.
func (m *Machine) Measure(ctx context.Context) (*Measurement, error) {
	look := &Measurement{Left: map[Signal][]Amount{}}
	err := errors.Join(look.addMemory(), m.podMemory(look), look.addTasks(), m.disks(ctx, look))
	look.Partial = err != nil
	return look, err
}

// ownImageFs reports whether images have a separate file system (kubelet: HasDedicatedImageFs).
func (m *Machine) ownImageFs(ctx context.Context) (bool, error) {
	look := &Measurement{Left: map[Signal][]Amount{}}
	err := m.disks(ctx, look)
	return look.OwnImageFs, err
}

// disks measures the file systems.
func (m *Machine) disks(ctx context.Context, look *Measurement) error {
	node, err := m.node(look)
	images, imagesErr := m.images(ctx)
	if images != nil {
		look.addDisk(ImageFsAvailable, ImageFsInodesFree, images)
		look.OwnImageFs = images.Device != node
	}
	return errors.Join(err, imagesErr)
}

func (l *Measurement) add(s Signal, a Amount) { l.Left[s] = append(l.Left[s], a) }

func (l *Measurement) addDisk(bytes, inodes Signal, fs *machine.FileSystem) {
	l.add(bytes, Amount{fs.Free, fs.Size})
	l.add(inodes, Amount{fs.InodesFree, fs.Inodes})
}

func (l *Measurement) addMemory() error {
	capacity := machine.MemoryBytes()
	used, err := cgroup.WorkingSet()
	if err == nil && capacity > 0 {
		l.add(MemoryAvailable, Amount{max(capacity-used, 0), capacity})
	}
	return err
}

// podMemory measures the memory of all pods together. Without a cgroup there are no pods.
func (m *Machine) podMemory(look *Measurement) error {
	if m.AllPods == nil {
		return nil
	}
	name, limit := m.AllPods()
	if limit <= 0 {
		return nil
	}
	u, err := cgroup.Machine{}.Usage(name)
	if err == nil && u.WorkingSet != nil {
		used := int64(min(*u.WorkingSet, uint64(limit)))
		look.add(AllocatableMemoryAvailable, Amount{limit - used, limit})
	}
	return err
}

func (l *Measurement) addTasks() error {
	running, limit, err := machine.Tasks("/proc")
	if err == nil {
		l.add(PIDAvailable, Amount{limit - running, limit})
	}
	return err
}

// node measures the file systems of the node, and returns the device of the first.
func (m *Machine) node(look *Measurement) (device uint64, failed error) {
	for _, dir := range m.NodeDirs {
		d, err := measure(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		case device == 0:
			device = d.Device
		}
		look.addDisk(NodeFsAvailable, NodeFsInodesFree, d)
	}
	return device, failed
}

// images measures the file system of images. It returns nil if the runtime does not report one.
func (m *Machine) images(ctx context.Context) (*machine.FileSystem, error) {
	if !m.known {
		dir, err := m.ImageFs(ctx)
		if err != nil {
			return nil, err
		}
		m.imageDir, m.known = dir, true
	}
	if m.imageDir == "" {
		return nil, nil // there is none that is known
	}
	return measure(m.imageDir)
}

// measure measures a file system. A file system without a limit of inodes reports 0 inodes.
func measure(dir string) (*machine.FileSystem, error) {
	fs, err := machine.FileSystemOf(dir)
	if err != nil {
		return nil, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return &fs, nil
}
