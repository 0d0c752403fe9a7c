package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// sandboxHeld holds the whole pod while its sandbox could not be made: the
// runtime has no such handler, or a port of the node is taken. Nothing is stopped
// for a sandbox that cannot come.
func (b *builder) sandboxHeld() bool {
	if !b.d.createSandbox || b.d.terminal {
		return false
	}
	if text := b.v.handlerFault(); text != "" {
		b.p.Holds = append(b.p.Holds, Hold{Reason: model.CreatePodSandboxError, Message: text})
	}
	for _, port := range podspec.PublishedPorts(b.v.pod) {
		if owner, taken := b.v.obs.Ports[port.String()]; taken {
			b.p.Holds = append(b.p.Holds, Hold{
				Reason: model.HostPortConflict, Message: fmt.Sprintf("%s: hostPort %s is used by %s", port.Path, port, owner),
			})
		}
	}
	return slices.ContainsFunc(b.p.Holds, func(h Hold) bool { return h.Container == "" })
}

// handlerFault says that the runtime does not have the handler the pod asks for.
func (v *view) handlerFault() string {
	name, has := podspec.RuntimeHandler(v.pod), v.obs.Runtime.Handlers
	if name == "" || has == nil || slices.Contains(has, name) {
		return ""
	}
	named := slices.DeleteFunc(slices.Clone(has), func(h string) bool { return h == "" })
	return fmt.Sprintf("spec.runtimeClassName: the runtime has no handler %q; it has %s",
		name, firstOf(strings.Join(named, ", "), "only its default one, which needs no runtimeClassName"))
}

// imageVolumeFault says that the runtime cannot mount images as volumes: the CRI
// has had them since containerd 2.1.
func (v *view) imageVolumeFault(ref podspec.ContainerRef) string {
	r := v.obs.Runtime
	if r.Name != "containerd" || !olderThan(r.Version, 2, 1) {
		return ""
	}
	if mounted := v.imageVolumes(ref); len(mounted) > 0 {
		return fmt.Sprintf("volume %s is an image volume, which containerd %s cannot mount: 2.1 and newer can", mounted[0].Name, r.Version)
	}
	return ""
}

// olderThan compares the first two numbers of a version; one that cannot be read
// is not older.
func olderThan(version string, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	x, errX := strconv.Atoi(parts[0])
	y, errY := strconv.Atoi(parts[1])
	return errX == nil && errY == nil && (x < major || (x == major && y < minor))
}

// noteCapacity warns of a pod that asks for more than the machine has: a kubelet
// would not admit it.
func (b *builder) noteCapacity() {
	if len(b.v.obs.Capacity) == 0 {
		return
	}
	requests := resource.PodRequests(b.v.pod, resource.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		wants, has := requests[name], b.v.obs.Capacity[name]
		if isCounted(name) && wants.Cmp(has) > 0 {
			b.note(fmt.Sprintf("the pod requests %s of %s, and this machine has %s: a kubelet would refuse it (OutOf%s)",
				wants.String(), name, has.String(), name))
		}
	}
}

// isCounted tells that what a machine has of a resource is known, and is none if it is not
// mentioned: a kernel may not have that size of huge pages.
func isCounted(name v1.ResourceName) bool {
	return slices.Contains(resizable(), name) || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
