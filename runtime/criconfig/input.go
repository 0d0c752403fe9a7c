package criconfig

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Node has the facts of the machine and its runtime that configuration depends on.
type Node struct {
	// Name is the node's name in downward API fields.
	Name string `json:"name,omitempty"`
	// HostName is the name of the machine, if that of the node differs. Otherwise it is empty.
	HostName string `json:"hostName,omitempty"`
	// Arch is the architecture of its processors, in Go's form.
	Arch string `json:"arch,omitempty"`
	// IPs are the node's addresses, the primary one first.
	IPs         []string `json:"ips,omitempty"`
	MemoryBytes int64    `json:"memoryBytes,omitempty"`
	CPUs        int      `json:"cpus,omitempty"`
	// StorageBytes is the size of the disk with podctl's state; zero if unknown.
	StorageBytes int64 `json:"storageBytes,omitempty"`
	// Allocatable has the default limits in downward API fields.
	Allocatable v1.ResourceList `json:"allocatable,omitempty"`
	// Capacity are the resources of the machine; nil if they are Allocatable.
	Capacity v1.ResourceList `json:"capacity,omitempty"`
	CgroupV2 bool            `json:"cgroupV2,omitempty"`
	// SystemdCgroup reports whether the runtime uses the systemd cgroup driver.
	SystemdCgroup bool `json:"systemdCgroup,omitempty"`
	// SwapController reports whether the kernel can limit swap.
	SwapController bool `json:"swapController,omitempty"`
	// HugePageSizes are in the CRI's form and order.
	HugePageSizes []string `json:"hugePageSizes,omitempty"`
	// CgroupRoot is the path before /kubepods; empty if podctl has the machine for itself.
	CgroupRoot string `json:"cgroupRoot,omitempty"`
	// PodPIDs limits the tasks of each pod, unless it is zero or negative.
	PodPIDs int64 `json:"podPIDs,omitempty"`
	// ResolvConf and HostsFile are the node's own files.
	ResolvConf []byte `json:"-"`
	HostsFile  []byte `json:"-"`
	// ClusterDNS are the addresses of the cluster's DNS servers, and ClusterDomain is the end of its names. Only pods
	// of the API server have them. Both may be empty.
	ClusterDNS    []string `json:"clusterDNS,omitempty"`
	ClusterDomain string   `json:"clusterDomain,omitempty"`
	// ThermalThrottle are paths of this machine that are masked in addition to the usual ones.
	ThermalThrottle []string `json:"thermalThrottle,omitempty"`
	SELinux         bool     `json:"seLinux,omitempty"`
	AppArmor        bool     `json:"appArmor,omitempty"`
	// SeccompRoot is the directory of the profiles of type Localhost.
	SeccompRoot string `json:"seccompRoot,omitempty"`
	// SeccompDefault is set if containers that set no profile have the default one of the runtime (kubelet:
	// seccompDefault).
	SeccompDefault bool `json:"seccompDefault,omitempty"`
	// Handlers are the runtime's handlers by name, "" being the default.
	Handlers                 map[string]Handler `json:"handlers,omitempty"`
	SupplementalGroupsPolicy bool               `json:"supplementalGroupsPolicy,omitempty"`
	// Classes are RuntimeClasses of the cluster; nil if they were not read. Only a pod of the API server has them, and
	// only the one that it names, if that exists.
	Classes model.RuntimeClasses `json:"runtimeClasses,omitzero"`
}

// As returns the facts as pods of the API server see them, which have the values of the Node. Without an identity it
// returns the facts unchanged.
func (n Node) As(identity *model.NodeIdentity) Node {
	if identity == nil {
		return n
	}
	n.HostName, n.Capacity = n.Name, n.Allocatable
	n.Name, n.IPs, n.Allocatable = identity.Name, identity.IPs, identity.Allocatable
	n.ClusterDNS, n.ClusterDomain = identity.ClusterDNS, identity.ClusterDomain
	return n
}

// HandlerOf returns the handler of the runtime for a pod; empty for the default one. For a pod of the API server, that
// is the handler of its RuntimeClass; the error has the kubelet's text. For any other pod, spec.runtimeClassName is the
// name of the handler.
func (n *Node) HandlerOf(d *podspec.Desired) (string, error) {
	if d.FromCluster() {
		return n.Classes.Handler(d.Pod)
	}
	return ptr.Deref(d.Pod.Spec.RuntimeClassName, ""), nil
}

// Handler has the features of one runtime handler.
type Handler struct {
	RecursiveReadOnlyMounts bool `json:"recursiveReadOnlyMounts,omitempty"`
	UserNamespaces          bool `json:"userNamespaces,omitempty"`
}

// Paths are the files and directories that the caller prepared.
type Paths struct {
	LogDir   string
	EtcHosts string
	// Volumes maps a volume's name to its content.
	Volumes map[string]string
	// UserNS is the ID range of a pod with hostUsers: false.
	UserNS *IDMapping
	// TerminationLog is empty if the container has none.
	TerminationLog string
	// SubPaths maps the position in volumeMounts to the bound path.
	SubPaths map[int]string
}

// IDMapping is the ID range of a pod with its own user namespace.
type IDMapping struct {
	HostID uint32
	Length uint32
}

// ContainerInput is the input for the configuration of one container. All containers of a pod share it, except
// Container, Attempt, TargetID, Files and the last two paths.
type ContainerInput struct {
	Desired   *podspec.Desired
	Container podspec.ContainerRef
	Node      Node
	Paths     Paths
	Attempt   uint32
	// Images are the images of the pod and of its volumes, by reference.
	Images map[string]model.Image
	PodIPs []string
	// TargetID is the container whose processes an ephemeral container sees.
	TargetID string
	// Files has the values of keys in files of volumes; empty for a key that its file does not contain. A file that
	// does not exist has no entries.
	Files map[FileKey]string
	// Devices are what device plugins add; nil for a container without devices.
	Devices *model.DeviceConfig
	// Services are the variables with the addresses of Services.
	Services map[string]string
}

// FileKey identifies a key in a file of an emptyDir.
type FileKey struct{ Volume, Path, Key string }
