package doctor

import "time"

// Facts describes a machine. A nil field means that it could not be read; it is not checked.
type Facts struct {
	// Time is the machine's clock.
	Time     time.Time `json:"time"`
	Endpoint Endpoint  `json:"endpoint"`
	// Runtime is the runtime's description of itself; nil without an endpoint.
	Runtime *Runtime `json:"runtime,omitempty"`
	CNI     *CNI     `json:"cni,omitempty"`
	Cgroups Cgroups  `json:"cgroups"`
	Process Process  `json:"process"`
	Kernel  Kernel   `json:"kernel"`
	// Kubelet is a kubelet on the same runtime; nil if there is none.
	Kubelet *Kubelet `json:"kubelet,omitempty"`
	// APIServer is the API server of the machine's agent; nil if no agent answers, or it has none.
	APIServer *APIServer `json:"apiServer,omitempty"`
	Disks     []Disk     `json:"disks"`
	State     State      `json:"state"`
}

// Endpoint is the address of the runtime and where it was configured.
type Endpoint struct {
	Address string `json:"address,omitempty"`
	Origin  string `json:"origin,omitempty"`
	// Problem is the reason why it cannot be used.
	Problem string `json:"problem,omitempty"`
}

// Runtime is the runtime's description of itself.
type Runtime struct {
	Name       string      `json:"name,omitempty"`
	Version    string      `json:"version,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Driver is the cgroup driver that the runtime reports; empty if it is too old to report one.
	Driver string `json:"cgroupDriver,omitempty"`
	// SystemdCgroup is set if the runtime's configuration selects the systemd driver.
	SystemdCgroup bool `json:"systemdCgroup,omitempty"`
	// SandboxImage is the image of the pods' sandboxes; nil if the runtime does not report it.
	SandboxImage *SandboxImage `json:"sandboxImage,omitempty"`
	// Problem is the reason why the runtime did not answer.
	Problem string `json:"problem,omitempty"`
}

// SandboxImage is the image for the runtime's sandboxes.
type SandboxImage struct {
	// Name is empty if the runtime only reports that it has none.
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

// APIServer is an API server as an agent sees it.
type APIServer struct {
	Address string `json:"address"`
	// Problem is the reason why it does not respond, and Refusal why the agent does not use it although it responds.
	Problem string `json:"problem,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// CNI is the network configuration that the runtime uses.
type CNI struct {
	ConfDir string `json:"confDir"`
	// Configs lists the files in ConfDir.
	Configs    []string `json:"configs"`
	PluginDirs []string `json:"pluginDirs"`
	// Networks lists the networks that the runtime has loaded. Wanted lists the plugins that they name, and Installed
	// those in PluginDirs.
	Networks  []string `json:"networks"`
	Wanted    []string `json:"wanted"`
	Installed []string `json:"installed"`
}

// Cgroups describes the machine's control groups.
type Cgroups struct {
	// Version is 1 or 2; zero if none are mounted.
	Version     int      `json:"version"`
	Controllers []string `json:"controllers,omitempty"`
	// Writable reports whether cgroups can be created.
	Writable bool `json:"writable"`
}

// Process describes the permissions of podctl itself.
type Process struct {
	UID int `json:"uid"`
	// Capabilities is the effective set, in hexadecimal as the kernel shows it.
	Capabilities string `json:"capabilities"`
}

// Kernel describes the features of the kernel.
type Kernel struct {
	Release string `json:"release"`
	Overlay bool   `json:"overlay"`
	Seccomp bool   `json:"seccomp"`
	// Namespaces lists the kinds of namespaces, as in /proc/self/ns.
	Namespaces []string `json:"namespaces"`
	// UserNamespaces is the maximum number of user namespaces.
	UserNamespaces  int  `json:"userNamespaces"`
	Bridge          bool `json:"bridge"`
	BridgeNetfilter bool `json:"bridgeNetfilter"`
	IPForward       bool `json:"ipForward"`
	// Systemd reports whether the machine runs systemd.
	Systemd bool `json:"systemd"`
}

// Kubelet is a process that runs pods on the same runtime.
type Kubelet struct {
	Process string `json:"process"`
	PID     int    `json:"pid"`
}

// Disk is the space of a file system that pods need.
type Disk struct {
	// Name describes its use.
	Name       string `json:"name"`
	Path       string `json:"path"`
	Size       uint64 `json:"size"`
	Free       uint64 `json:"free"`
	Inodes     uint64 `json:"inodes"`
	InodesFree uint64 `json:"inodesFree"`
	// LowPercent is the percentage that a kubelet requires to be free.
	LowPercent uint64 `json:"lowPercent"`
}

// State describes podctl's state directory.
type State struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Mode   string `json:"mode,omitempty"`
	// Open reports whether users other than the owner can read it.
	Open bool `json:"open"`
	// Problem is the reason why it is not used.
	Problem     string `json:"problem,omitempty"`
	Writable    bool   `json:"writable"`
	Checkpoints int    `json:"checkpoints"`
	// Unreadable has the reason for each checkpoint that cannot be read.
	Unreadable []string `json:"unreadable,omitempty"`
	// OpenCheckpoints lists the checkpoints that other users can read.
	OpenCheckpoints []string  `json:"openCheckpoints,omitempty"`
	NewestWrite     time.Time `json:"newestWrite,omitzero"`
	// Hidden lists mounts below the directory that no path leads to. HiddenBy is the mount that covers them.
	Hidden   []string `json:"hidden,omitempty"`
	HiddenBy string   `json:"hiddenBy,omitempty"`
}

// Redact replaces external texts in the facts, those of the runtime and of errors, with the results of clean. The
// checks do not depend on these texts.
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
