package criconfig

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Node holds the facts of the machine and its runtime that configuration
// depends on.
type Node struct {
	// Name is the node's name in downward API fields.
	Name string `json:"name,omitempty"`
	// Arch is that of its processors, as Go names it.
	Arch string `json:"arch,omitempty"`
	// IPs are the node's addresses, the primary one first.
	IPs         []string `json:"ips,omitempty"`
	MemoryBytes int64    `json:"memoryBytes,omitempty"`
	CPUs        int      `json:"cpus,omitempty"`
	// StorageBytes is the size of the disk with podctl's state; zero if unknown.
	StorageBytes int64 `json:"storageBytes,omitempty"`
	// Allocatable is what limits default to in downward API fields.
	Allocatable v1.ResourceList `json:"allocatable,omitempty"`
	CgroupV2    bool            `json:"cgroupV2,omitempty"`
	// SystemdCgroup reports whether the runtime uses the systemd cgroup driver.
	SystemdCgroup bool `json:"systemdCgroup,omitempty"`
	// SwapController reports whether the kernel can limit swap.
	SwapController bool `json:"swapController,omitempty"`
	// HugePageSizes are named as the CRI names them, in the order to send.
	HugePageSizes []string `json:"hugePageSizes,omitempty"`
	// CgroupRoot is put before /kubepods; empty on a machine of its own.
	CgroupRoot string `json:"cgroupRoot,omitempty"`
	// ResolvConf and HostsFile are the node's own files.
	ResolvConf []byte `json:"-"`
	HostsFile  []byte `json:"-"`
	// ThermalThrottle are paths of this machine that are masked beside the usual
	// ones.
	ThermalThrottle []string `json:"thermalThrottle,omitempty"`
	SELinux         bool     `json:"seLinux,omitempty"`
	AppArmor        bool     `json:"appArmor,omitempty"`
	// SeccompRoot holds the profiles of type Localhost.
	SeccompRoot string `json:"seccompRoot,omitempty"`
	// Handlers are the runtime's handlers by name, "" being the default.
	Handlers                 map[string]Handler `json:"handlers,omitempty"`
	SupplementalGroupsPolicy bool               `json:"supplementalGroupsPolicy,omitempty"`
}

// Handler is what one runtime handler can do.
type Handler struct {
	RecursiveReadOnlyMounts bool `json:"recursiveReadOnlyMounts,omitempty"`
	UserNamespaces          bool `json:"userNamespaces,omitempty"`
}

// Paths are where the caller prepared things on disk.
type Paths struct {
	LogDir   string
	EtcHosts string
	// Volumes maps a volume's name to its content.
	Volumes map[string]string
	// UserNS is the range of ids a pod with hostUsers: false got.
	UserNS *IDMapping
	// TerminationLog is empty when the container has none.
	TerminationLog string
	// SubPaths maps the position in volumeMounts to what was bound for it.
	SubPaths map[int]string
}

// IDMapping is the range of ids a pod with its own user namespace got.
type IDMapping struct {
	HostID uint32
	Length uint32
}

// ContainerInput is everything the configuration of one container depends on. Beside Container, Attempt, TargetID, Files and the
// last two paths, all of it is the same for the containers of a pod.
type ContainerInput struct {
	Desired   *podspec.Desired
	Container podspec.ContainerRef
	Node      Node
	Paths     Paths
	Attempt   uint32
	// Images are the images of the pod, those of its volumes too, by their references.
	Images map[string]model.Image
	PodIPs []string
	// TargetID is the container whose processes an ephemeral container sees.
	TargetID string
	// Files has the values of keys in files of volumes; empty for a key that its file does not have. None of a file that does
	// not exist is there.
	Files map[FileKey]string
	// Services are the variables by which the container finds Services.
	Services map[string]string
}

// FileKey names a key in a file of an emptyDir.
type FileKey struct{ Volume, Path, Key string }
