package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"
)

// Resources are the limits of a pod's cgroup. Nil means not set.
type Resources struct {
	CPUShares *uint64
	CPUQuota  *int64
	CPUPeriod *uint64
	Memory    *int64
	// HugePages maps a page size, as the kernel names it (2MB), to bytes.
	HugePages map[string]uint64
}

// UnavailableError says that this machine does not let podctl make cgroups.
type UnavailableError struct {
	Path string
	Err  error
}

// Error names the cgroup and the cause.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cgroup %s cannot be made: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// isSystemd tells a path in the systemd driver's form: its last element is a
// slice.
func isSystemd(path string) bool { return strings.HasSuffix(path, ".slice") }

// managerFor opens a cgroup. Devices are left to the runtime.
func managerFor(path string, r *cgroups.Resources) (cgroups.Manager, error) {
	config := &cgroups.Cgroup{Resources: r}
	if isSystemd(path) {
		config.Systemd = true
		config.Name = filepath.Base(path)
		config.Parent = filepath.Base(filepath.Dir(path))
	} else {
		config.Path = path
	}
	r.SkipDevices, r.SkipFreezeOnSet = true, true
	m, err := manager.New(config)
	if err != nil {
		return nil, &UnavailableError{Path: path, Err: err}
	}
	return m, nil
}

// Ensure creates a pod's cgroup if it is not there, and sets its limits.
func Ensure(path string, r Resources) error {
	m, err := managerFor(path, translate(r))
	if err != nil {
		return err
	}
	if err := m.Apply(-1); err != nil {
		return &UnavailableError{Path: path, Err: err}
	}
	if err := m.Set(translate(r)); err != nil {
		return fmt.Errorf("setting the limits of cgroup %s: %w", path, err)
	}
	return nil
}

func translate(r Resources) *cgroups.Resources {
	out := &cgroups.Resources{SkipDevices: true, SkipFreezeOnSet: true}
	if r.CPUShares != nil {
		out.CpuShares = *r.CPUShares
		out.CpuWeight = cgroups.ConvertCPUSharesToCgroupV2Value(*r.CPUShares)
	}
	if r.CPUQuota != nil {
		out.CpuQuota = *r.CPUQuota
	}
	if r.CPUPeriod != nil {
		out.CpuPeriod = *r.CPUPeriod
	}
	if r.Memory != nil {
		out.Memory = *r.Memory
	}
	if !limitsHugePages() {
		return out
	}
	for size, limit := range r.HugePages {
		out.HugetlbLimit = append(out.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: size, Limit: limit})
	}
	return out
}

// limitsHugePages tells that this machine has the controller for huge pages.
func limitsHugePages() bool {
	if cgroups.IsCgroup2UnifiedMode() {
		text, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
		return err == nil && slices.Contains(strings.Fields(string(text)), "hugetlb")
	}
	_, err := os.Stat("/sys/fs/cgroup/hugetlb")
	return err == nil
}

// Exists tells whether a pod's cgroup is there, in every hierarchy that matters.
func Exists(path string) bool {
	found := false
	for _, root := range hierarchies() {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			return false
		}
		found = true
	}
	return found
}

// hierarchies are the directories in which cgroups lie: one with version 2, one
// for cpu and one for memory with version 1.
func hierarchies() []string {
	if cgroups.IsCgroup2UnifiedMode() {
		return []string{"/sys/fs/cgroup"}
	}
	return []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"}
}

// removeTries is how often a cgroup is tried to be removed: the kernel may need a
// moment after the last process has ended.
const (
	removeTries = 20
	removePause = 20 * time.Millisecond
)

// Remove removes a pod's cgroup from every hierarchy, with the empty ones in it.
// One in which something still runs stays and is an error; one that is not there
// is none.
func Remove(path string) error {
	if path == "" || path == "/" {
		return nil
	}
	roots, err := cgroupMounts()
	if err != nil {
		return err
	}
	for try := range removeTries {
		if try > 0 {
			time.Sleep(removePause)
		}
		if err = removeFrom(roots, path); !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return fmt.Errorf("cgroup %s is still in use by processes that podctl did not start: %w", path, unix.EBUSY)
}

func removeFrom(roots []string, path string) error {
	for _, root := range roots {
		if err := removeTree(filepath.Join(root, path)); err != nil {
			return fmt.Errorf("removing cgroup %s: %w", path, err)
		}
	}
	return nil
}

func cgroupMounts() ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	roots := make([]string, 0, len(mounts))
	for _, m := range mounts {
		roots = append(roots, m.Mountpoint)
	}
	return roots, nil
}

// removeTree removes a directory of cgroups from its leaves up. The kernel
// refuses to remove one that is in use.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
