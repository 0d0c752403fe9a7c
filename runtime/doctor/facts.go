package doctor

import "time"

// Facts is what was found on a machine. A part that is nil could not be looked at
// and is not judged.
type Facts struct {
	// Time is the machine's clock.
	Time     time.Time `json:"time"`
	Endpoint Endpoint  `json:"endpoint"`
	// Runtime is what the runtime says of itself; nil without an endpoint.
	Runtime *Runtime `json:"runtime,omitempty"`
	CNI     *CNI     `json:"cni,omitempty"`
	Cgroups Cgroups  `json:"cgroups"`
	Process Process  `json:"process"`
	Kernel  Kernel   `json:"kernel"`
	// Kubelet is one that runs on the same runtime; nil when there is none.
	Kubelet *Kubelet `json:"kubelet,omitempty"`
	Disks   []Disk   `json:"disks"`
	State   State    `json:"state"`
}

// Endpoint is where the runtime listens, and who said so.
type Endpoint struct {
	Address string `json:"address,omitempty"`
	Origin  string `json:"origin,omitempty"`
	// Problem is why it cannot be used.
	Problem string `json:"problem,omitempty"`
}

// Runtime is what a runtime says of itself.
type Runtime struct {
	Name       string      `json:"name,omitempty"`
	Version    string      `json:"version,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Driver is the cgroup driver it names; empty when it is too old to name one.
	Driver string `json:"cgroupDriver,omitempty"`
	// SystemdCgroup is what the runtime's configuration says of the driver.
	SystemdCgroup bool `json:"systemdCgroup,omitempty"`
	// SandboxImage is the image of the pods' sandboxes; nil when the runtime does not tell.
	SandboxImage *SandboxImage `json:"sandboxImage,omitempty"`
	// Problem is why it gave no answer.
	Problem string `json:"problem,omitempty"`
}

// SandboxImage is the image that the runtime makes sandboxes of.
type SandboxImage struct {
	// Name is empty when the runtime only says that it keeps none.
	Name    string `json:"name,omitempty"`
	Present bool   `json:"present"`
}

// Condition is one of the runtime's conditions.
type Condition struct {
	Type    string `json:"type"`
	Status  bool   `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// CNI is the network configuration that the runtime uses.
type CNI struct {
	ConfDir string `json:"confDir"`
	// Configs are the files in it.
	Configs    []string `json:"configs"`
	PluginDirs []string `json:"pluginDirs"`
	// Networks are those that the runtime has loaded, Wanted the plugins they name
	// and Installed those in the plugins' directories.
	Networks  []string `json:"networks"`
	Wanted    []string `json:"wanted"`
	Installed []string `json:"installed"`
}

// Cgroups is what the machine has of control groups.
type Cgroups struct {
	// Version is 1 or 2; zero when none are mounted.
	Version     int      `json:"version"`
	Controllers []string `json:"controllers,omitempty"`
	// Writable reports whether cgroups can be made.
	Writable bool `json:"writable"`
}

// Process is what podctl itself may do.
type Process struct {
	UID int `json:"uid"`
	// Capabilities is the effective set, in hexadecimal as the kernel shows it.
	Capabilities string `json:"capabilities"`
}

// Kernel is what the kernel can do.
type Kernel struct {
	Release string `json:"release"`
	Overlay bool   `json:"overlay"`
	Seccomp bool   `json:"seccomp"`
	// Namespaces are the kinds there are, as in /proc/self/ns.
	Namespaces []string `json:"namespaces"`
	// UserNamespaces is how many of them there may be.
	UserNamespaces  int  `json:"userNamespaces"`
	Bridge          bool `json:"bridge"`
	BridgeNetfilter bool `json:"bridgeNetfilter"`
	IPForward       bool `json:"ipForward"`
	// Systemd reports whether systemd runs the machine.
	Systemd bool `json:"systemd"`
}

// Kubelet is a process that runs pods on the same runtime.
type Kubelet struct {
	Process string `json:"process"`
	PID     int    `json:"pid"`
}

// Disk is the space of a file system that pods need.
type Disk struct {
	// Name is what it is for.
	Name       string `json:"name"`
	Path       string `json:"path"`
	Size       uint64 `json:"size"`
	Free       uint64 `json:"free"`
	Inodes     uint64 `json:"inodes"`
	InodesFree uint64 `json:"inodesFree"`
	// LowPercent is how much of it a kubelet wants to be free.
	LowPercent uint64 `json:"lowPercent"`
}

// State is podctl's state directory.
type State struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Mode   string `json:"mode,omitempty"`
	// Open reports whether others than the owner can look into it.
	Open bool `json:"open"`
	// Problem is why it is not used.
	Problem     string `json:"problem,omitempty"`
	Writable    bool   `json:"writable"`
	Checkpoints int    `json:"journals"`
	// Unreadable says of each checkpoint that cannot be read why.
	Unreadable []string `json:"unreadable,omitempty"`
	// OpenCheckpoints are those that others can read.
	OpenCheckpoints []string  `json:"openJournals,omitempty"`
	NewestWrite     time.Time `json:"newestWrite,omitzero"`
	// Hidden are mounts below it that no path leads to, and HiddenBy is the mount over them.
	Hidden   []string `json:"hidden,omitempty"`
	HiddenBy string   `json:"hiddenBy,omitempty"`
}

// Redact replaces the texts of others in the facts, the runtime's and those of errors, by what
// clean returns for them. Nothing is judged by these texts.
func (f *Facts) Redact(clean func(string) string) {
	f.Endpoint.Problem, f.State.Problem = clean(f.Endpoint.Problem), clean(f.State.Problem)
	for i, text := range f.State.Unreadable {
		f.State.Unreadable[i] = clean(text)
	}
	if f.Runtime == nil {
		return
	}
	f.Runtime.Problem = clean(f.Runtime.Problem)
	for i := range f.Runtime.Conditions {
		c := &f.Runtime.Conditions[i]
		c.Reason, c.Message = clean(c.Reason), clean(c.Message)
	}
}
