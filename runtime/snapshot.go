package runtime

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// Snapshot is the observed state of one pod as the runtime and the disk gave it,
// before anything is made of it. Plans are made from snapshots alone.
type Snapshot struct {
	TakenAt    time.Time
	Runtime    SnapshotRuntime
	Sandboxes  []*runtimeapi.PodSandboxStatus
	Containers []SnapshotContainer
	// Images are the images the pod's containers name. A nil status: absent.
	Images      map[string]plan.Image
	Volumes     map[string]plan.Volume
	Cgroup      *bool
	LogAttempts map[string]uint32
	Journal     *state.Journal
}

// SnapshotRuntime is what the runtime says of itself.
type SnapshotRuntime struct {
	Name    string
	Version string
	Status  *runtimeapi.StatusResponse
}

// SnapshotContainer is a container's status with the sandbox it belongs to,
// which the status does not name.
type SnapshotContainer struct {
	SandboxID string
	Status    *runtimeapi.ContainerStatus
}

// Observed is the snapshot in the planner's words.
func (s *Snapshot) Observed() plan.Observed {
	o := plan.Observed{
		Runtime:      s.runtime(),
		Images:       s.Images,
		Volumes:      s.Volumes,
		CgroupExists: s.Cgroup,
		LogAttempts:  s.LogAttempts,
	}
	for _, sandbox := range s.Sandboxes {
		o.Sandboxes = append(o.Sandboxes, observedSandbox(sandbox))
	}
	for _, c := range s.Containers {
		o.Containers = append(o.Containers, observedContainer(c))
	}
	if s.Journal != nil {
		o.Journal = s.Journal.Observed()
	}
	return o
}

func (s *Snapshot) runtime() plan.Runtime {
	r := plan.Runtime{Name: s.Runtime.Name, Version: s.Runtime.Version}
	for _, c := range s.Runtime.Status.GetStatus().GetConditions() {
		if c.GetType() == runtimeapi.NetworkReady {
			ready := c.GetStatus()
			r.NetworkReady, r.NetworkMessage = &ready, cmp.Or(c.GetMessage(), c.GetReason())
		}
	}
	for _, h := range s.Runtime.Status.GetRuntimeHandlers() {
		r.Handlers = append(r.Handlers, h.GetName())
	}
	slices.Sort(r.Handlers)
	return r
}

func observedSandbox(s *runtimeapi.PodSandboxStatus) plan.Sandbox {
	out := plan.Sandbox{
		ID:          s.GetId(),
		Attempt:     s.GetMetadata().GetAttempt(),
		State:       plan.SandboxNotReady,
		CreatedAt:   time.Unix(0, s.GetCreatedAt()),
		HostNetwork: s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
		NoNetwork:   s.GetNetwork() == nil,
		SpecHash:    s.GetAnnotations()[criconfig.AnnotationSandboxSpecHash],
		Spec:        s.GetAnnotations()[criconfig.AnnotationSandboxSpec],
	}
	if s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
		out.State = plan.SandboxReady
	}
	if ip := s.GetNetwork().GetIp(); ip != "" {
		out.IPs = append(out.IPs, ip)
		for _, more := range s.GetNetwork().GetAdditionalIps() {
			out.IPs = append(out.IPs, more.GetIp())
		}
	}
	return out
}

func observedContainer(c SnapshotContainer) plan.Container {
	s, a := c.Status, c.Status.GetAnnotations()
	return plan.Container{
		ID:           s.GetId(),
		SandboxID:    c.SandboxID,
		Name:         cmp.Or(s.GetLabels()[criconfig.LabelContainerName], s.GetMetadata().GetName()),
		Attempt:      s.GetMetadata().GetAttempt(),
		RestartCount: parseCount(a[criconfig.AnnotationRestartCount]),
		State:        containerState(s.GetState()),
		CreatedAt:    unixNano(s.GetCreatedAt()),
		StartedAt:    unixNano(s.GetStartedAt()),
		FinishedAt:   unixNano(s.GetFinishedAt()),
		ExitCode:     s.GetExitCode(),
		Reason:       s.GetReason(),
		Message:      s.GetMessage(),
		Image:        s.GetImage().GetImage(),
		ImageID:      cmp.Or(s.GetImageId(), s.GetImageRef()),
		ImageRef:     s.GetImageRef(),
		Hash:         parseHash(a[criconfig.AnnotationContainerHash]),
		SpecHash:     a[criconfig.AnnotationContainerSpecHash],
		Spec:         a[criconfig.AnnotationContainerSpec],
		GracePeriod:  parseSeconds(a[criconfig.AnnotationPodTerminationGracePeriod]),
		PreStop:      plan.HandlerName(criconfig.PreStopFrom(a)),
	}
}

func containerState(s runtimeapi.ContainerState) plan.ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return plan.Created
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return plan.Running
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return plan.Exited
	case runtimeapi.ContainerState_CONTAINER_UNKNOWN:
	}
	return plan.Unknown
}

// unixNano turns the CRI's zero, which stands for "never", into the zero time.
func unixNano(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

func parseCount(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// parseHash brings a hash into the one form it is compared in; an unreadable one
// is empty and matches nothing (kubelet: getUint64ValueFromLabel).
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
