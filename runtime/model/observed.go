package model

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Observed is the observed state of one pod at one moment. A nil section is unknown. Unknown sections block nothing and
// stop nothing.
type Observed struct {
	Runtime    Runtime
	Sandboxes  []Sandbox
	Containers []Container
	// Ports maps the ports of the node that the pod needs and another user has, as Port.String writes them, to that
	// user. Nil if the ports were not checked.
	Ports map[string]string
	Machine
	// Others are the other pods that use resources of the node. Nil if they were not read.
	Others []Admitted
	// Unmanaged are containers in the pod's sandboxes that belong to no pod.
	Unmanaged []Unmanaged
	// Images holds the images by their reference in the manifest. An image without an entry was not looked up.
	Images map[string]Image
	// Volumes holds the volumes on disk by volume name. A volume without an entry was not looked up.
	Volumes map[string]Volume
	// VolumesRemain reports whether podctl has files of volumes, or a range of ids, for a pod of the API server.
	VolumesRemain bool
	// CgroupExists reports whether the pod's own cgroup exists. Nil if it was not checked, or if podctl does not create
	// it.
	CgroupExists *bool
	// CgroupRemains reports whether an incomplete cgroup of the pod exists, because its removal was interrupted.
	CgroupRemains bool
	// Faults holds the known reasons why a container cannot be created, by its name, and for the sandbox under the
	// empty name. Nil if they were not checked.
	Faults map[string]Fault
	// Devices are the devices that containers have or can get; nil if they were not chosen or the pod needs none.
	Devices *Devices
	// LogAttempts is the highest attempt with a log file, by container name. It continues the restart count if the
	// runtime has lost a container's records (kubelet: calcRestartCountByLogDir).
	LogAttempts map[string]uint32
	Memory      Memory
	// Unrecorded reports whether podctl looked for its record of the pod and found none.
	Unrecorded bool
	// Reserved holds attempts that are already in use, by container name, and for the sandbox under the empty name. The
	// next attempt is above it.
	Reserved map[string]uint32
}

// Runtime is the observed container runtime.
type Runtime struct {
	Name    string
	Version string
	// NetworkReady is the runtime's condition of that name; nil if unknown.
	NetworkReady *bool
	// NetworkMessage is the runtime's message about a network that is not ready.
	NetworkMessage string
	// Handlers are the runtime handlers, "" being the default one. Nil if neither the status nor the configuration of
	// the runtime lists them.
	Handlers []string
	// Handler is the handler for the pod. It is empty for the default one, and if the RuntimeClass of a pod of the API
	// server is unknown.
	Handler string
	// RecursiveReadOnly are the handlers that can make a mount and everything below it read-only.
	RecursiveReadOnly []string
}

// SandboxState is the state of a pod sandbox.
type SandboxState string

// The states of a sandbox in the CRI.
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
	// NoNetwork reports whether the runtime reports no network block at all. A network without an address differs from
	// that.
	NoNetwork bool
	// SpecHash is podctl's own hash of the sandbox-level fields; empty if another tool created the sandbox.
	SpecHash string
	// Spec is the projection behind SpecHash as compact JSON, to explain a change; empty if it was too large.
	Spec string
}

// ContainerState is the state of a container record.
type ContainerState string

// The states of a container in the CRI.
const (
	Created ContainerState = "CREATED"
	Running ContainerState = "RUNNING"
	Exited  ContainerState = "EXITED"
	Unknown ContainerState = "UNKNOWN"
)

// Container is one container record of the runtime. Several records may have one name: the newest counts, the older
// ones are its history.
type Container struct {
	ID        string
	SandboxID string
	Name      string
	// Attempt is the runtime's attempt number, RestartCount the kubelet's annotation. Tools that follow the kubelet
	// keep the two equal.
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
	// Hash is the kubelet's hash of the definition, hexadecimal without leading zeros. If it is missing or unreadable,
	// it is empty and matches nothing.
	Hash string
	// SpecHash is podctl's own hash of the definition. It is empty if another tool created the container, which is then
	// compared by Hash alone.
	SpecHash string
	// Spec is the projection behind SpecHash as compact JSON.
	Spec string
	// GracePeriod is the pod's grace period at the creation of the container, in seconds; nil if it is not recorded.
	GracePeriod *int64
	// PreStop is the kind of preStop hook that the container was created with: exec, httpGet, sleep or empty. It is for
	// a container that left the manifest.
	PreStop string
	// Resources are the effective cpu and memory limits and cpu request; nil if the runtime does not report them.
	Resources *v1.ResourceRequirements
	// User is the user that started its first process; nil if the runtime does not report it.
	User *v1.ContainerUser
	// LogFull reports whether the container writes to a log that must be rotated.
	LogFull bool
	// Starting reports whether the postStart hook of the container is still running. The status and the probes of the
	// pod treat the container as not started.
	Starting bool
	// Debug marks a container that `podctl debug` added: it belongs to the desired state.
	Debug bool
}

// Image is an image in the runtime's store.
type Image struct {
	// ID is empty if the image is absent.
	ID string
	// UID and Username are the user the image asks for (kubelet: getImageUser).
	UID      *int64
	Username string
	// Digests are the names with a digest under which the image was pulled.
	Digests []string
	// Unverified is set if the pod has not proved that the registry would give it the image.
	Unverified bool
}

// Other reports whether a container's image ID, as the runtime reports it, is known to differ from this image. Older
// runtimes report a digest under which the image was pulled.
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

// NameLike returns the image's identity in the form of id: its ID, or a name with a digest.
func (i Image) NameLike(id string) string {
	if strings.Contains(id, "@") && len(i.Digests) > 0 {
		return i.Digests[0]
	}
	return i.ID
}

// Volume is the state of one volume of the pod on disk.
type Volume struct {
	// Prepared reports whether the volume is complete and can be mounted.
	Prepared bool
	// Digest is the digest of the content on disk; empty for volumes whose content podctl does not write.
	Digest string
	// Wanted is the digest of the desired content.
	Wanted string
}

// HandlerName returns the kind of a lifecycle handler as in the manifest: exec, httpGet, sleep or tcpSocket; empty if
// there is none.
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
