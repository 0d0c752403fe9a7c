package snapshot

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	netutils "k8s.io/utils/net"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// Pod is the raw observed state of one pod, as the runtime and the disk reported it. Plans are made from snapshots
// only. A nil section was not read.
type Pod struct {
	TakenAt    time.Time
	Pod        model.PodRef
	Runtime    Runtime
	Sandboxes  []*runtimeapi.PodSandboxStatus
	Containers []Container
	// Images are images of the runtime, at least those that the pod names.
	Images  []Image
	Volumes map[string]Volume
	// VolumesRemain reports whether a pod of the API server has files of volumes or a range of ids.
	VolumesRemain bool
	Cgroup        *bool
	// CgroupRemains reports whether an incomplete cgroup exists.
	CgroupRemains bool
	LogAttempts   map[string]uint32
	// Ports are the ports of the node that the pod needs and another user has.
	Ports map[string]string
	// Faults are the known faults of the pod, as it was desired at that time.
	Faults     *Faults
	Node       *criconfig.Node
	Checkpoint *state.Checkpoint
	// Unseen reports whether the checkpoint was not read.
	Unseen bool
}

// Runtime is the runtime's information about itself.
type Runtime struct {
	Name    string
	Version string
	Status  *runtimeapi.StatusResponse
}

// Container is a container's status with its sandbox, which the status does not contain.
type Container struct {
	SandboxID string
	Status    *runtimeapi.ContainerStatus
	// TerminationMessage is the termination message of an exited container.
	TerminationMessage string
	// LogFull reports whether the log of a running container must be rotated.
	LogFull bool
	// Starting reports whether the postStart hook of the container is still running.
	Starting bool
}

// Volume is the state of one volume of the pod on disk.
type Volume struct {
	Prepared bool `json:"prepared"`
	// Digest is the digest of the content; empty for a volume whose content podctl does not write.
	Digest string `json:"digest,omitempty"`
}

// Faults are the known reasons why parts of a pod cannot be created.
type Faults struct {
	// Desired is the digest of their pod. They do not apply to another one.
	Desired string `json:"desired"`
	// Found are the faults by container, and that of the sandbox under the empty name.
	Found map[string]model.Fault `json:"found"`
	// Devices are the devices that its containers have or can get; nil if it needs none.
	Devices *model.Devices `json:"devices,omitempty"`
}

// of returns the faults of a pod and its devices; nil if they are unknown.
func (f *Faults) of(desired *podspec.Desired) (map[string]model.Fault, *model.Devices) {
	if f == nil || digest.Compare(f.Desired, desired.Digest()) == digest.Different {
		return nil, nil
	}
	return f.withDevices(), f.Devices
}

// withDevices returns the faults with those of devices. Another fault of the same container counts before them.
func (f *Faults) withDevices() map[string]model.Fault {
	if f.Devices == nil || len(f.Devices.Faults) == 0 {
		return f.Found
	}
	found := maps.Clone(f.Found)
	if found == nil {
		found = map[string]model.Fault{}
	}
	for container, fault := range f.Devices.Faults {
		if _, has := found[container]; !has {
			found[container] = model.Fault{
				Reason: model.OutOf(v1.ResourceName(fault.Resource)), Message: fault.Message, Status: fault.Status,
			}
		}
	}
	return found
}

// Input returns the input of a plan for a pod.
func (s *Pod) Input(ref model.PodRef, desired *podspec.Desired, opts plan.Options) *plan.Input {
	facts := podstatus.Input{
		Desired: desired, Observed: s.Observed(ref, desired), Now: s.TakenAt, Cluster: podstatus.ClusterOf(desired),
	}
	return &plan.Input{Input: facts, Pod: ref, Options: opts}
}

// Observed translates the snapshot for the planner, for a pod with the given manifest; desired is nil to delete it.
func (s *Pod) Observed(ref model.PodRef, desired *podspec.Desired) model.Observed {
	o := model.Observed{
		Runtime:       s.runtime(),
		VolumesRemain: s.VolumesRemain,
		CgroupExists:  s.Cgroup,
		CgroupRemains: s.CgroupRemains,
		LogAttempts:   s.LogAttempts,
		Ports:         s.Ports,
	}
	if s.Node != nil {
		o.Machine = MachineOf(s.Node)
	}
	if desired != nil {
		o.Runtime.Handler, _ = cmp.Or(s.Node, &criconfig.Node{}).HandlerOf(desired) // The faults have the error.
	}
	for _, sandbox := range s.Sandboxes {
		if OwnedBy(ref, sandbox.GetLabels()) {
			o.Sandboxes = append(o.Sandboxes, ObservedSandbox(sandbox))
		}
	}
	for _, c := range s.Containers {
		switch {
		case c.IsUnmanaged():
			o.Unmanaged = append(o.Unmanaged, model.Unmanaged{
				ID:        c.Status.GetId(),
				Name:      c.Status.GetMetadata().GetName(),
				SandboxID: c.SandboxID,
			})
		case OwnedBy(ref, c.Status.GetLabels()):
			o.Containers = append(o.Containers, observedContainer(c))
		}
	}
	if s.Checkpoint != nil {
		o.Memory = s.Checkpoint.Memory
		o.Unrecorded = !s.Unseen && o.Memory.Applied == nil
	}
	if desired != nil {
		o.Images = s.ImagesOf(podspec.ImageNames(desired.Pod))
		o.Volumes = s.volumesOf(desired)
		o.Faults, o.Devices = s.Faults.of(desired)
	}
	return o
}

// MachineOf translates the facts of a machine for the planner. Without the name of the machine, most of it is unknown.
func MachineOf(node *criconfig.Node) model.Machine {
	m := model.Machine{Capacity: node.Allocatable, NodeIPs: node.IPs}
	if node.Capacity != nil {
		m.Capacity = node.Capacity
	}
	if node.StorageBytes > 0 && m.Capacity != nil {
		m.Capacity = maps.Clone(m.Capacity)
		m.Capacity[v1.ResourceEphemeralStorage] = *resource.NewQuantity(node.StorageBytes, resource.BinarySI)
	}
	if node.Name == "" || node.Arch == "" {
		return m
	}
	m.Name, m.SELinux, m.AppArmor = node.Name, &node.SELinux, &node.AppArmor
	m.SupplementalGroups = &node.SupplementalGroupsPolicy
	m.Labels = map[string]string{
		v1.LabelHostname: cmp.Or(node.HostName, node.Name), v1.LabelOSStable: "linux", v1.LabelArchStable: node.Arch,
	}
	return m
}

// IsUnmanaged reports whether a container has no label or annotation of any pod.
func (c *Container) IsUnmanaged() bool {
	for key := range c.Status.GetAnnotations() {
		if strings.HasPrefix(key, "io.kubernetes.") {
			return false
		}
	}
	return c.Status.GetLabels()[criconfig.LabelPodUID] == ""
}

// OwnedBy reports whether a record belongs to a pod by its label. A record without a label is assumed to.
func OwnedBy(ref model.PodRef, labels map[string]string) bool {
	uid, labelled := labels[criconfig.LabelPodUID]
	return !labelled || uid == string(ref.UID)
}

// volumesOf compares the pod's volumes on disk with their desired content. Content that cannot be computed because its
// secrets were left out is assumed to be correct.
func (s *Pod) volumesOf(desired *podspec.Desired) map[string]model.Volume {
	if s.Volumes == nil {
		return nil
	}
	c := volume.Context{Desired: desired}
	if s.Node != nil {
		c.Allocatable = s.Node.Allocatable
	}
	volumes := map[string]model.Volume{}
	for _, vol := range podspec.MountedVolumes(desired) {
		have := s.Volumes[vol.Name]
		wanted, err := volume.Wanted(c, vol)
		switch {
		case err != nil && have.Prepared && desired.FromCluster() && errors.As(err, new(*volume.UnresolvedError)):
			// As with a kubelet, a volume keeps its content while an object of it is missing.
			wanted = have.Digest
		case err != nil:
			volumes[vol.Name] = model.Volume{}
			continue
		case podspec.UsesSecret(vol.Volume) &&
			(desired.Redacted || digest.Compare(have.Digest, wanted) == digest.Unknown):
			wanted = have.Digest
		}
		volumes[vol.Name] = model.Volume{Prepared: have.Prepared, Digest: have.Digest, Wanted: wanted}
	}
	return volumes
}

func (s *Pod) runtime() model.Runtime {
	r := model.Runtime{Name: s.Runtime.Name, Version: s.Runtime.Version}
	for _, c := range s.Runtime.Status.GetStatus().GetConditions() {
		if c.GetType() == runtimeapi.NetworkReady {
			ready := c.GetStatus()
			r.NetworkReady, r.NetworkMessage = &ready, cmp.Or(c.GetMessage(), c.GetReason())
		}
	}
	for _, h := range s.Runtime.Status.GetRuntimeHandlers() {
		r.Handlers = append(r.Handlers, h.GetName())
		if h.GetFeatures().GetRecursiveReadOnlyMounts() {
			r.RecursiveReadOnly = append(r.RecursiveReadOnly, h.GetName())
		}
	}
	slices.Sort(r.Handlers)
	return r
}

// ObservedSandbox translates a sandbox for the planner.
func ObservedSandbox(s *runtimeapi.PodSandboxStatus) model.Sandbox {
	out := model.Sandbox{
		ID:          s.GetId(),
		Attempt:     s.GetMetadata().GetAttempt(),
		State:       model.SandboxNotReady,
		CreatedAt:   time.Unix(0, s.GetCreatedAt()),
		HostNetwork: s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
		NoNetwork:   s.GetNetwork() == nil,
		SpecHash:    s.GetAnnotations()[criconfig.AnnotationSandboxSpecHash],
		Spec:        s.GetAnnotations()[criconfig.AnnotationSandboxSpec],
	}
	if s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
		out.State = model.SandboxReady
	}
	out.IPs = sandboxIPs(s.GetNetwork())
	return out
}

// sandboxIPs returns the addresses that a runtime reports; none if one of them is invalid (kubelet:
// determinePodSandboxIPs).
func sandboxIPs(network *runtimeapi.PodSandboxNetworkStatus) []string {
	if network.GetIp() == "" {
		return nil
	}
	ips := []string{network.GetIp()}
	for _, more := range network.GetAdditionalIps() {
		ips = append(ips, more.GetIp())
	}
	if slices.ContainsFunc(ips, func(ip string) bool { return netutils.ParseIPSloppy(ip) == nil }) {
		return nil
	}
	return ips
}

func observedContainer(c Container) model.Container {
	st, a := c.Status, c.Status.GetAnnotations()
	return model.Container{
		ID:           st.GetId(),
		SandboxID:    c.SandboxID,
		Name:         cmp.Or(st.GetLabels()[criconfig.LabelContainerName], st.GetMetadata().GetName()),
		Attempt:      st.GetMetadata().GetAttempt(),
		RestartCount: ParseCount(a[criconfig.AnnotationRestartCount]),
		State:        ContainerState(st.GetState()),
		CreatedAt:    unixNano(st.GetCreatedAt()),
		StartedAt:    unixNano(st.GetStartedAt()),
		FinishedAt:   unixNano(st.GetFinishedAt()),
		ExitCode:     st.GetExitCode(),
		Reason:       st.GetReason(),
		Message:      joinMessages(st.GetMessage(), c.TerminationMessage),
		Image:        st.GetImage().GetImage(),
		ImageID:      cmp.Or(st.GetImageId(), st.GetImageRef()),
		ImageRef:     st.GetImageRef(),
		Hash:         parseHash(a[criconfig.AnnotationContainerHash]),
		SpecHash:     a[criconfig.AnnotationContainerSpecHash],
		Spec:         a[criconfig.AnnotationContainerSpec],
		GracePeriod:  parseSeconds(a[criconfig.AnnotationPodTerminationGracePeriod]),
		PreStop:      model.HandlerName(criconfig.PreStopFrom(a)),
		Debug:        a[criconfig.AnnotationDebug] != "",
		LogFull:      c.LogFull,
		Starting:     c.Starting,
		Resources:    resourcesInForce(st.GetResources().GetLinux()),
		User:         userOf(st.GetUser()),
	}
}

// joinMessages joins the runtime's message and the container's own.
func joinMessages(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
}

// ContainerState translates a state of the CRI for the planner.
func ContainerState(s runtimeapi.ContainerState) model.ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return model.Created
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return model.Running
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return model.Exited
	case runtimeapi.ContainerState_CONTAINER_UNKNOWN:
	}
	return model.Unknown
}

// unixNano returns the zero time for the CRI's zero, which means "never".
func unixNano(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// ParseCount parses a number; it returns zero if that fails.
func ParseCount(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// parseHash normalizes a hash for comparisons. An unreadable one becomes empty and matches nothing (kubelet:
// getUint64ValueFromLabel).
func parseHash(text string) string {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 16)
}

func parseSeconds(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
