package criconfig

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Node holds the facts of the machine and its runtime that configuration
// depends on.
type Node struct {
	// Name is the node's name in downward API fields.
	Name string
	// IPs are the node's addresses, the primary one first.
	IPs         []string
	MemoryBytes int64
	CPUs        int
	// Allocatable is what limits default to in downward API fields.
	Allocatable v1.ResourceList
	CgroupV2    bool
	// SystemdCgroup tells that the runtime uses the systemd cgroup driver.
	SystemdCgroup bool
	// SwapController tells that the kernel can limit swap.
	SwapController bool
	// HugePageSizes are named as the CRI names them, in the order to send.
	HugePageSizes []string
	// CgroupRoot is put before /kubepods; empty on a machine of its own.
	CgroupRoot string
	// ResolvConf and HostsFile are the node's own files.
	ResolvConf []byte
	HostsFile  []byte
	// ThermalThrottle are paths of this machine that are masked beside the usual
	// ones.
	ThermalThrottle []string
	SELinux         bool
	AppArmor        bool
	// SeccompRoot holds the profiles of type Localhost.
	SeccompRoot string
	// Handlers are the runtime's handlers by name, "" being the default.
	Handlers                 map[string]Handler
	SupplementalGroupsPolicy bool
}

// Handler is what one runtime handler can do.
type Handler struct {
	RecursiveReadOnlyMounts bool
	UserNamespaces          bool
}

// Paths are where the caller prepared things on disk.
type Paths struct {
	LogDir   string
	EtcHosts string
	// TerminationLog is empty when the container has none.
	TerminationLog string
	// Volumes maps a volume's name to its content.
	Volumes map[string]string
	// SubPaths maps the position in volumeMounts to what was bound for it.
	SubPaths map[int]string
}

// ImageUser is the user an image asks for.
type ImageUser struct {
	UID      *int64
	Username string
}

// IDMapping is the range of ids a pod with its own user namespace got.
type IDMapping struct {
	HostID uint32
	Length uint32
}

// ContainerInput is everything the configuration of one container depends on.
type ContainerInput struct {
	Desired   *podspec.Desired
	Container podspec.ContainerRef
	Node      Node
	Paths     Paths
	Attempt   uint32
	// ImageRef is the image as the runtime identifies it.
	ImageRef string
	Image    ImageUser
	PodIPs   []string
	// TargetID is the container whose processes an ephemeral container sees.
	TargetID string
	UserNS   *IDMapping
	// Files holds what fileKeyRef entries refer to, by volume and path.
	Files map[FileKey][]byte
	// VolumeImages maps the reference of an image volume to the image's id.
	VolumeImages map[string]string
}

// FileKey names a file in an emptyDir.
type FileKey struct{ Volume, Path string }
