package stats

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Disks are the file systems of the node. An unknown one has no values.
type Disks struct {
	// State is the file system of podctl's state directory, Images that of images and containers.
	State, Images FileSystem
	// ImageBytes and ImageInodes are what images use.
	ImageBytes, ImageInodes uint64
}

// FileSystem is the size of a file system.
type FileSystem struct {
	Bytes, FreeBytes, Inodes, FreeInodes uint64
}

// FileSystemOf measures the file system of a path. Free bytes are those for programs without privileges.
func FileSystemOf(path string) FileSystem {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return FileSystem{}
	}
	size := uint64(max(s.Bsize, 0)) //nolint:gosec // not negative
	return FileSystem{Bytes: s.Blocks * size, FreeBytes: s.Bavail * size, Inodes: s.Files, FreeInodes: s.Ffree}
}

// stats returns the size of a file system; nil if it is not known.
func (f FileSystem) stats(at metav1.Time) *statsapi.FsStats {
	if f.Bytes == 0 {
		return nil
	}
	return &statsapi.FsStats{
		Time: at, CapacityBytes: &f.Bytes, AvailableBytes: &f.FreeBytes,
		UsedBytes: new(f.Bytes - min(f.Bytes, f.FreeBytes)), Inodes: &f.Inodes, InodesFree: &f.FreeInodes,
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
	return &statsapi.RuntimeStats{ImageFs: images, ContainerFs: d.Images.stats(at)}
}

// layer returns what a container has written.
func (d *Disks) layer(at metav1.Time, used *runtimeapi.FilesystemUsage) *statsapi.FsStats {
	s := d.Images.stats(at)
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

// rlimitOf returns the number of processes of the machine, and its limit; nil if it is not known.
func rlimitOf(at metav1.Time) *statsapi.RlimitStats {
	limit, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return nil
	}
	maximum, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64)
	var info unix.Sysinfo_t
	if err != nil || unix.Sysinfo(&info) != nil {
		return nil
	}
	return &statsapi.RlimitStats{Time: at, MaxPID: &maximum, NumOfRunningProcesses: new(int64(info.Procs))}
}

// machineNetwork returns the interfaces of the machine, and that of the default route; nil if they are not known.
func machineNetwork(at metav1.Time) *statsapi.NetworkStats {
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return nil
	}
	routes, _ := os.ReadFile("/proc/self/net/route") // Without it, no interface is the default one.
	s := interfacesOf(string(text), defaultInterface(string(routes)))
	s.Time = at
	return &s
}

// interfacesOf parses the kernel's table of interfaces. It leaves out loopback, and those of pods and bridges.
func interfacesOf(text, main string) (s statsapi.NetworkStats) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, rest, found := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		values := strings.Fields(rest)
		if !found || len(values) < 11 || name == "lo" || strings.HasPrefix(name, "veth") {
			continue
		}
		value := func(at int) *uint64 {
			n, err := strconv.ParseUint(values[at], 10, 64)
			if err != nil {
				return nil
			}
			return &n
		}
		one := statsapi.InterfaceStats{
			Name: name, RxBytes: value(0), RxErrors: value(2), TxBytes: value(8), TxErrors: value(10),
		}
		s.Interfaces = append(s.Interfaces, one)
		if name == main {
			s.InterfaceStats = one
		}
	}
	return s
}

// defaultInterface returns the interface of the default route in the kernel's table; empty if there is none.
func defaultInterface(routes string) string {
	for line := range strings.Lines(routes) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "00000000" {
			return f[0]
		}
	}
	return ""
}
