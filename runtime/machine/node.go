package machine

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/runtime/criconfig"
)

// Node reads the inputs for the configuration of pods below a root directory. It omits values that cannot be read. A
// pod that needs one is refused where it is used.
func Node(root string) criconfig.Node {
	at := func(path string) string { return filepath.Join(root, path) }
	memory := memTotal(at("proc"))
	name, _ := os.Hostname()
	cpus := goruntime.NumCPU()
	return criconfig.Node{
		Name:           strings.ToLower(name),
		Arch:           goruntime.GOARCH,
		IPs:            hostIPs(func(path string) []byte { return contents(at(path)) }, addressesOf),
		MemoryBytes:    memory,
		CPUs:           cpus,
		Allocatable:    allocatable(cpus, memory, hugePages(at("sys/kernel/mm/hugepages"))),
		CgroupV2:       exists(at("sys/fs/cgroup/cgroup.controllers")),
		SwapController: swapController(root),
		HugePageSizes:  hugePageSizes(at("sys/kernel/mm/hugepages")),
		ResolvConf:     contents(resolvConf(root)),
		HostsFile:      contents(at("etc/hosts")),
		ThermalThrottle: slices.Sorted(slices.Values(globbed(root,
			"sys/devices/system/cpu/cpu[0-9]*/thermal_throttle"))),
		SELinux:  exists(at("sys/fs/selinux/enforce")),
		AppArmor: strings.HasPrefix(string(contents(at("sys/module/apparmor/parameters/enabled"))), "Y"),
	}
}

func contents(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// MemoryBytes returns the machine's memory in bytes, or zero if it cannot be read.
func MemoryBytes() int64 { return memTotal(procfs.DefaultMountPoint) }

func memTotal(proc string) int64 {
	return meminfo(proc, func(info *procfs.Meminfo) *uint64 { return info.MemTotalBytes })
}

// meminfo returns a size of /proc/meminfo in bytes, or zero if it cannot be read.
func meminfo(proc string, size func(*procfs.Meminfo) *uint64) int64 {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return 0
	}
	info, err := fs.Meminfo()
	if err != nil {
		return 0
	}
	return int64(min(ptr.Deref(size(&info), 0), 1<<62))
}

func allocatable(cpus int, memory int64, pages v1.ResourceList) v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(int64(cpus), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
	maps.Copy(list, pages)
	return list
}

// resolvConf prefers the file with the real servers if systemd-resolved puts a stub into /etc/resolv.conf, like the
// kubelet's setup tools.
func resolvConf(root string) string {
	stub := filepath.Join(root, "etc/resolv.conf")
	full := filepath.Join(root, "run/systemd/resolve/resolv.conf")
	if bytes.Contains(contents(stub), []byte("127.0.0.53")) && exists(full) {
		return full
	}
	return stub
}

// swapController reports whether the kernel can limit swap here, with either version of cgroups.
func swapController(root string) bool {
	cgroups := filepath.Join(root, "sys/fs/cgroup")
	if exists(filepath.Join(cgroups, "memory/memory.memsw.limit_in_bytes")) {
		return true
	}
	entries, _ := os.ReadDir(cgroups)
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		return entry.IsDir() && exists(filepath.Join(cgroups, entry.Name(), "memory.swap.max"))
	})
}

// globbed returns the matching paths below root, as absolute paths without root.
func globbed(root, pattern string) []string {
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return nil
	}
	for i := range found {
		found[i] = "/" + strings.TrimPrefix(strings.TrimPrefix(found[i], root), "/")
	}
	return found
}

// hugePageSizes returns the kernel's huge page sizes with the CRI's names: 2MB, 1GB.
func hugePageSizes(dir string) []string {
	sizes := pageSizes(dir)
	names := make([]string, 0, len(sizes))
	for _, kib := range sizes {
		names = append(names, pageSizeName(kib))
	}
	return names
}

// hugePages returns the memory reserved for huge pages, with Kubernetes' name for each size: hugepages-2Mi. A size that
// cannot be read counts as zero.
func hugePages(dir string) v1.ResourceList {
	list := v1.ResourceList{}
	for _, kib := range pageSizes(dir) {
		text := contents(filepath.Join(dir, fmt.Sprintf("hugepages-%dkB", kib), "nr_hugepages"))
		count, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		size := resource.NewQuantity(kib<<10, resource.BinarySI)
		name := v1.ResourceName(v1.ResourceHugePagesPrefix + size.String())
		list[name] = *resource.NewQuantity(count*kib<<10, resource.BinarySI)
	}
	return list
}

// pageSizes returns the kernel's sizes of huge pages in KiB, the smallest first.
func pageSizes(dir string) []int64 {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var sizes []int64
	for _, entry := range entries {
		text := strings.TrimSuffix(strings.TrimPrefix(entry.Name(), "hugepages-"), "kB")
		if kib, err := strconv.ParseInt(text, 10, 64); err == nil {
			sizes = append(sizes, kib)
		}
	}
	slices.Sort(sizes)
	return sizes
}

func pageSizeName(kib int64) string {
	switch {
	case kib >= 1<<20:
		return strconv.FormatInt(kib>>20, 10) + "GB"
	case kib >= 1<<10:
		return strconv.FormatInt(kib>>10, 10) + "MB"
	}
	return strconv.FormatInt(kib, 10) + "KB"
}
