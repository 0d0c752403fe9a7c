package volume

import (
	"fmt"
	"os"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// prepareEmptyDir makes an empty directory on disk, in memory or on huge pages.
// One that is complete is left alone, owner and modes included.
func (c Context) prepareEmptyDir(vol *v1.Volume) error {
	dir := Path(c.Pod, vol)
	if _, prepared, err := OnDisk(c, vol.Name); err != nil || prepared {
		return err
	}
	if err := c.makeMedium(dir, vol.EmptyDir); err != nil {
		return err
	}
	if err := c.applyFSGroup(dir, groupWrites); err != nil {
		return err
	}
	return c.mark(vol)
}

// makeMedium makes the directory itself, where the volume's medium asks for it.
func (c Context) makeMedium(dir string, source *v1.EmptyDirVolumeSource) error {
	if source.Medium == v1.StorageMediumDefault {
		return makeWorld(dir)
	}
	if source.Medium == v1.StorageMediumMemory {
		return c.mountMemory(dir, source.SizeLimit)
	}
	return c.mountHugePages(dir, string(source.Medium))
}

// mountMemory mounts a file system in memory, unless one is there. Its size is
// bounded by the node's memory, the pod's limit and the volume's own.
func (c Context) mountMemory(dir string, limit *resource.Quantity) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if mounted, err := mountinfo.Mounted(dir); err != nil || mounted {
		return err
	}
	var options []string
	if size := c.memoryBound(limit); size > 0 {
		options = append(options, fmt.Sprintf("size=%d", size))
	}
	// Without noswap a secret could be written to a swap disk; older kernels do
	// not know the option.
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, strings.Join(append(options, "noswap"), ","))
	if err != nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, strings.Join(options, ","))
	}
	if err != nil {
		return fmt.Errorf("mounting a file system in memory: %w", err)
	}
	return os.Chmod(dir, 0o777)
}

func (c Context) memoryBound(limit *resource.Quantity) int64 {
	bound := c.Allocatable.Memory().Value()
	limits := resourcehelper.PodLimits(c.Desired.Pod, resourcehelper.PodResourcesOptions{})
	candidates := []*resource.Quantity{limit}
	if everyContainerLimited(c.Desired.Pod) {
		candidates = append(candidates, limits.Memory())
	}
	for _, q := range candidates {
		if q != nil && q.Value() > 0 && (bound == 0 || q.Value() < bound) {
			bound = q.Value()
		}
	}
	return bound
}

// everyContainerLimited tells that the pod as a whole has a memory limit.
func everyContainerLimited(pod *v1.Pod) bool {
	if pod.Spec.Resources != nil && !pod.Spec.Resources.Limits.Memory().IsZero() {
		return true
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Resources.Limits.Memory().IsZero() {
			return false
		}
	}
	return true
}

// mountHugePages mounts a file system on huge pages of one size.
func (c Context) mountHugePages(dir, medium string) error {
	size := strings.TrimPrefix(medium, string(v1.StorageMediumHugePagesPrefix))
	if medium == string(v1.StorageMediumHugePages) {
		var err error
		if size, err = onlyPageSize(c.Desired.Pod); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if mounted, err := mountinfo.Mounted(dir); err != nil || mounted {
		return err
	}
	options := "pagesize=" + strings.TrimSuffix(size, "i")
	if err := unix.Mount("nodev", dir, "hugetlbfs", 0, options); err != nil {
		return fmt.Errorf("mounting huge pages of %s: %w", size, err)
	}
	return os.Chmod(dir, 0o777)
}

// onlyPageSize is the one size of huge pages that the pod asks for.
func onlyPageSize(pod *v1.Pod) (string, error) {
	found := ""
	for name := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		switch {
		case !ok:
		case found != "":
			return "", fmt.Errorf("medium HugePages needs one page size, the pod asks for several; write HugePages-<size>")
		default:
			found = size
		}
	}
	if found == "" {
		return "", fmt.Errorf("medium HugePages needs a request for hugepages-<size>")
	}
	return found, nil
}
