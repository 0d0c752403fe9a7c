package stats

import (
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/machine"
)

// Disks are the file systems of the node. An unknown one has no values.
type Disks struct {
	// State is the file system of podctl's state directory, Images that of images and containers.
	State, Images FileSystem
	// ImageBytes and ImageInodes are what images use.
	ImageBytes, ImageInodes uint64
	// Containers is the file system of containers, if it is not that of images. ContainerBytes and ContainerInodes are
	// what containers use of it.
	Containers                      FileSystem
	ContainerBytes, ContainerInodes uint64
}

// FileSystem is the size of a file system. FreeBytes are those for programs without privileges.
type FileSystem struct {
	Bytes, UsedBytes, FreeBytes, Inodes, FreeInodes uint64
}

// FileSystemOf measures the file system of a path.
func FileSystemOf(path string) FileSystem {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return FileSystem{}
	}
	size := uint64(max(s.Bsize, 0)) //nolint:gosec // not negative
	return FileSystem{
		Bytes: s.Blocks * size, UsedBytes: (s.Blocks - min(s.Bfree, s.Blocks)) * size, FreeBytes: s.Bavail * size,
		Inodes: s.Files, FreeInodes: s.Ffree,
	}
}

// stats returns the size of a file system; nil if it is not known.
func (f FileSystem) stats(at metav1.Time) *statsapi.FsStats {
	if f.Bytes == 0 {
		return nil
	}
	return &statsapi.FsStats{
		Time: at, CapacityBytes: &f.Bytes, AvailableBytes: &f.FreeBytes,
		UsedBytes: &f.UsedBytes, Inodes: &f.Inodes, InodesFree: &f.FreeInodes,
		InodesUsed: new(f.Inodes - min(f.Inodes, f.FreeInodes)),
	}
}

// node returns the file system of the state directory.
func (d *Disks) node(at metav1.Time) *statsapi.FsStats { return d.State.stats(at) }

// runtime returns the file system of images, and what they use of it.
func (d *Disks) runtime(at metav1.Time) *statsapi.RuntimeStats {
	images := d.Images.stats(at)
	if images == nil {
		return nil
	}
	images.UsedBytes, images.InodesUsed = &d.ImageBytes, &d.ImageInodes
	containers := d.Containers.stats(at)
	if containers == nil {
		return &statsapi.RuntimeStats{ImageFs: images, ContainerFs: images}
	}
	containers.UsedBytes, containers.InodesUsed = &d.ContainerBytes, &d.ContainerInodes
	return &statsapi.RuntimeStats{ImageFs: images, ContainerFs: containers}
}

// layer returns what a container has written.
func (d *Disks) layer(at metav1.Time, used *runtimeapi.FilesystemUsage) *statsapi.FsStats {
	on := d.Images
	if d.Containers.Bytes > 0 {
		on = d.Containers
	}
	s := on.stats(at)
	if s == nil {
		s = &statsapi.FsStats{Time: at}
	}
	s.UsedBytes, s.InodesUsed = nil, nil
	if v := used.GetUsedBytes(); v != nil {
		s.UsedBytes = &v.Value
	}
	if v := used.GetInodesUsed(); v != nil {
		s.InodesUsed = &v.Value
	}
	return s
}

// rlimitOf returns the number of tasks of the machine, and its limit; nil if it is not known.
func rlimitOf(at metav1.Time) *statsapi.RlimitStats {
	running, limit, err := machine.Tasks("/proc")
	if err != nil {
		return nil
	}
	return &statsapi.RlimitStats{Time: at, MaxPID: &limit, NumOfRunningProcesses: &running}
}

// nodeSwap returns the swapped memory of the machine; nil if it is not known.
func nodeSwap(u *cgroup.Usage, at metav1.Time) *statsapi.SwapStats {
	total, free, known := swapSize()
	if !known {
		return swapOf(u, at)
	}
	used := total - min(free, total)
	if u.Swap != nil {
		used = min(*u.Swap, total)
	}
	return &statsapi.SwapStats{Time: at, SwapUsageBytes: &used, SwapAvailableBytes: new(total - used)}
}

// swapSize returns the size of the machine's swap in bytes, and how much of it is free.
func swapSize() (total, free uint64, known bool) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0, 0, false
	}
	return info.Totalswap * uint64(info.Unit), info.Freeswap * uint64(info.Unit), true
}
