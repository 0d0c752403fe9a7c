package model

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Observed is what the world looked like at one moment, as far as one pod is
// concerned. A section that is nil is unknown, and what is unknown blocks
// nothing and kills nothing.
type Observed struct {
	Runtime    Runtime
	Sandboxes  []Sandbox
	Containers []Container
	// Ports are the ports of the node that the pod wants and somebody else has, as
	// Port.String writes them, with who has them. Nil when nobody looked.
	Ports map[string]string
	Machine
	// Others are the other pods that take something of the node. Nil when nobody looked.
	Others []Admitted
	// Unmanaged are containers in the pod's sandboxes that belong to no pod.
	Unmanaged []Unmanaged
	// Images says what is known of an image, by the reference as the manifest
	// writes it. No entry: nobody looked.
	Images map[string]Image
	// Volumes says what lies on disk, by volume name. No entry: nobody looked.
	Volumes map[string]Volume
	// CgroupExists reports whether the pod's own cgroup is there; nil when nobody
	// looked, or when the pod's cgroup is not podctl's to make.
	CgroupExists *bool
	// CgroupRemains reports whether parts of the pod's own cgroup are there, which is not complete:
	// its removal was cut off.
	CgroupRemains bool
	// Faults is what is known against making a container, by its name, and against making the
	// sandbox under the empty name. Nil when nobody looked.
	Faults map[string]Fault
	// LogAttempts is the highest attempt for which a log file exists, by
	// container name. It carries the restart count on when the runtime has lost
	// a container's records (kubelet: calcRestartCountByLogDir).
	LogAttempts map[string]uint32
	Memory      Memory
	// Unrecorded reports whether podctl has looked for its record of the pod, and has none.
	Unrecorded bool
	// Reserved holds attempts which turned out to be taken: by container name,
	// and under the empty name for the sandbox. The next attempt is above it.
	Reserved map[string]uint32
}

// Runtime is the container runtime that was asked.
type Runtime struct {
	Name    string
	Version string
	// NetworkReady is the runtime's condition of that name; nil when unknown.
	NetworkReady *bool
	// NetworkMessage is the runtime's own word on a network that is not ready.
	NetworkMessage string
	// Handlers are the runtime handlers it has, "" being the default one; nil
	// when neither its status nor its configuration lists them.
	Handlers []string
	// RecursiveReadOnly are those handlers that can make all below a mount read-only.
	RecursiveReadOnly []string
}

// SandboxState is the state of a pod sandbox.
type SandboxState string

// The states of a sandbox, as the CRI has them.
const (
	SandboxReady    SandboxState = "READY"
	SandboxNotReady SandboxState = "NOTREADY"
)

// Sandbox is a pod sandbox as the runtime reports it.
type Sandbox struct {
	ID        string
	Attempt   uint32
	State     SandboxState
	CreatedAt time.Time
	// HostNetwork reports whether the sandbox shares the node's network namespace.
	HostNetwork bool
	// IPs are the addresses the runtime reports, the primary one first.
	IPs []string
	// NoNetwork reports whether the runtime reports no network block at all, which is
	// not the same as a network without an address.
	NoNetwork bool
	// SpecHash is podctl's own hash of the sandbox-level fields; empty when the
	// sandbox was made by another tool.
	SpecHash string
	// Spec is the projection behind SpecHash as compact JSON, for explaining a
	// change; empty when it was too large to keep.
	Spec string
}

// ContainerState is the state of a container record.
type ContainerState string

// The states of a container, as the CRI has them.
const (
	Created ContainerState = "CREATED"
	Running ContainerState = "RUNNING"
	Exited  ContainerState = "EXITED"
	Unknown ContainerState = "UNKNOWN"
)

// Container is one container record of the runtime. Several records may bear
// one name: the newest is "the" container, the older ones are its history.
type Container struct {
	ID        string
	SandboxID string
	Name      string
	// Attempt is the runtime's attempt number, RestartCount the kubelet's
	// annotation; tools that follow the kubelet keep the two equal.
	Attempt      uint32
	RestartCount uint32
	State        ContainerState
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time
	ExitCode     int32
	Reason       string
	Message      string
	Image        string
	ImageID      string
	ImageRef     string
	// Hash is the kubelet's hash of the definition, hexadecimal without leading
	// zeros; empty when it is missing or unreadable, which matches nothing.
	Hash string
	// SpecHash is podctl's own hash of the definition; empty on a container that
	// another tool made, which is then judged by Hash alone.
	SpecHash string
	// Spec is the projection behind SpecHash as compact JSON.
	Spec string
	// GracePeriod is the pod's grace period when the container was created, in
	// seconds; nil when it is not recorded.
	GracePeriod *int64
	// PreStop is the handler that the container was created with, for a
	// container that has left the manifest: exec, httpGet, sleep or empty.
	PreStop string
	// Resources are the limits of cpu and memory and the request of cpu that are in force;
	// nil when the runtime does not tell.
	Resources *v1.ResourceRequirements
	// User is whom its first process was started as; nil when the runtime does not tell.
	User *v1.ContainerUser
	// LogFull reports whether the container writes to a log that is due to be rotated.
	LogFull bool
	// Starting reports whether the postStart hook of the container is still running. The status
	// and the probes of the pod treat the container as not started.
	Starting bool
	// Debug marks a container that `podctl debug` added: it belongs to the
	// desired state.
	Debug bool
}

// Image is what is known of one image in the runtime's store.
type Image struct {
	// ID is empty when the image is absent.
	ID string
	// UID and Username are the user the image asks for (kubelet: getImageUser).
	UID      *int64
	Username string
	// Digests are the names with a digest under which the image was pulled.
	Digests []string
}

// Other reports whether the image of a container, as the runtime names it, is known to be
// another than this one. Older runtimes name it by a digest under which it was pulled.
func (i Image) Other(id string) bool {
	byDigest := strings.Contains(id, "@")
	switch {
	case id == "" || i.ID == "" || id == i.ID:
		return false
	case byDigest && len(i.Digests) == 0:
		return false
	}
	return !slices.Contains(i.Digests, id)
}

// NameLike is the image's identity in the form that another one has: its ID, or a name with a
// digest.
func (i Image) NameLike(id string) string {
	if strings.Contains(id, "@") && len(i.Digests) > 0 {
		return i.Digests[0]
	}
	return i.ID
}

// Volume is what lies on disk for one volume of the pod.
type Volume struct {
	// Prepared reports whether the volume is complete and can be mounted.
	Prepared bool
	// Digest is of the content that lies there; empty for volumes whose content
	// podctl does not write.
	Digest string
	// Wanted is the digest that the content should have now.
	Wanted string
}

// HandlerName names the kind of a lifecycle handler as the manifest does: exec,
// httpGet, sleep or tcpSocket; empty when there is none.
func HandlerName(h *v1.LifecycleHandler) string {
	switch {
	case h == nil:
		return ""
	case h.Exec != nil:
		return "exec"
	case h.HTTPGet != nil:
		return "httpGet"
	case h.Sleep != nil:
		return "sleep"
	case h.TCPSocket != nil:
		return "tcpSocket"
	}
	return ""
}
