package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/runtime/state"
)

// volumeMode is the mode of a volume's directory. Containers may run as any user, so it is open to all. The machine's
// own users cannot reach it, because they cannot enter the pod's directory (kubelet: emptyDir.setupDir).
const volumeMode fs.FileMode = 0o777

// kindMode is the mode of the directory above all volumes of a kind. A kubelet creates it with volumeMode, reduced by
// its umask.
const kindMode fs.FileMode = 0o755

// makeMedium creates the directory of a volume and mounts its medium there, unless both exist. For a volume on disk it
// unmounts what an earlier medium mounted.
func (m *mounter) makeMedium() error {
	dir, err := m.path()
	if err != nil {
		return err
	}
	kind := medium(m.vol.Volume)
	if kind == v1.StorageMediumDefault {
		if err = uncover(dir); err != nil {
			return err
		}
	}
	if err = makeVolumeDir(m.Pod, dir); err != nil || kind == v1.StorageMediumDefault {
		return err
	}
	if kind == v1.StorageMediumMemory {
		return mountMemory(dir, m.memorySize())
	}
	size, err := pageSize(m.Desired.Pod, kind)
	if err != nil {
		return err
	}
	return mountHugePages(dir, size)
}

func makeVolumeDir(p state.Pod, path string) error {
	if err := p.MakeDir(filepath.Dir(path), kindMode); err != nil {
		return err
	}
	dir, err := p.Make(path, volumeMode)
	if err != nil {
		return err
	}
	info, err := dir.Stat()
	if err == nil && info.Mode().Perm() != volumeMode {
		err = dir.Chmod(volumeMode)
	}
	return errors.Join(err, dir.Close())
}

// memorySize returns the maximum size in bytes of a volume in memory. It is the minimum of the node's allocatable
// memory, the pod's memory limit and the volume's sizeLimit, or 0 if none is known (kubelet:
// calculateEmptyDirMemorySize).
func (m *mounter) memorySize() int64 {
	sizes := []int64{m.Allocatable.Memory().Value(), podMemoryLimit(m.Desired.Pod)}
	if dir := m.vol.EmptyDir; dir != nil && dir.SizeLimit != nil {
		sizes = append(sizes, dir.SizeLimit.Value())
	}
	var least int64
	for _, size := range sizes {
		if size > 0 && (least == 0 || size < least) {
			least = size
		}
	}
	return least
}

// podMemoryLimit returns the memory limit of the pod's cgroup in bytes. It exists if every container or the pod itself
// has a limit (kubelet: ResourceConfigForPod).
func podMemoryLimit(pod *v1.Pod) int64 {
	every := true
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{
		ContainerFn: func(limits v1.ResourceList, _ resourcehelper.ContainerType) {
			every = every && !limits.Memory().IsZero()
		},
	})
	if r := pod.Spec.Resources; r != nil && !r.Limits.Memory().IsZero() {
		every = true
	}
	if !every {
		return 0
	}
	return limits.Memory().Value()
}

// pageSize returns the size in bytes of the huge pages of a volume. A container must request pages of this size
// (kubelet: SetUpAt, getPageSizeMountOption).
func pageSize(pod *v1.Pod, m v1.StorageMedium) (int64, error) {
	requested := requestedPages(pod)
	named, ok := strings.CutPrefix(string(m), string(v1.StorageMediumHugePagesPrefix))
	switch {
	case m == v1.StorageMediumHugePages:
		return onlyPageSize(requested)
	case !ok:
		return 0, fmt.Errorf("unknown storage medium %q", m)
	}
	size, err := resource.ParseQuantity(named)
	if err != nil {
		return 0, fmt.Errorf("medium %q has no page size: %w", m, err)
	}
	if !requested[size.Value()] {
		return 0, fmt.Errorf("medium %s needs a container that requests hugepages-%s: add it to its resources",
			m, named)
	}
	return size.Value(), nil
}

func onlyPageSize(requested map[int64]bool) (int64, error) {
	switch len(requested) {
	case 0:
		return 0, fmt.Errorf("medium %s needs a container that requests huge pages: "+
			"add, for example, hugepages-2Mi to its resources", v1.StorageMediumHugePages)
	case 1:
	default:
		return 0, fmt.Errorf("medium %s cannot be used if containers request several page sizes: "+
			"write, for example, HugePages-2Mi", v1.StorageMediumHugePages)
	}
	var size int64
	for size = range requested {
		break
	}
	return size, nil
}

// requestedPages returns the sizes of the huge pages that the pod or its containers request.
func requestedPages(pod *v1.Pod) map[int64]bool {
	var lists []v1.ResourceList
	for i := range pod.Spec.Containers {
		lists = append(lists, pod.Spec.Containers[i].Resources.Requests)
	}
	for i := range pod.Spec.InitContainers {
		lists = append(lists, pod.Spec.InitContainers[i].Resources.Requests)
	}
	if pod.Spec.Resources != nil {
		lists = append(lists, pod.Spec.Resources.Requests)
	}
	sizes := map[int64]bool{}
	for _, list := range lists {
		for name := range list {
			text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
			if size, err := resource.ParseQuantity(text); ok && err == nil {
				sizes[size.Value()] = true
			}
		}
	}
	return sizes
}
