package model

// Reason is why a step, a hold or a keep is in the plan, with a stable word from the vocabulary of Kubernetes. A
// reason only explains: the executor uses the step's other fields.
type Reason string

// The reasons. They are part of the JSON documents and do not change.
const (
	SandboxMissing       Reason = "SandboxMissing"
	SandboxNotReadyState Reason = "SandboxNotReady"
	MultipleSandboxes    Reason = "MultipleSandboxes"
	NetworkModeChanged   Reason = "NetworkModeChanged"
	NoIP                 Reason = "NoIP"
	SandboxConfigChanged Reason = "SandboxConfigChanged"
	// RolloutRestart: the user restarts the pods of the workload.
	RolloutRestart Reason = "RolloutRestart"

	NotCreated           Reason = "NotCreated"
	SpecChanged          Reason = "SpecChanged"
	LivenessFailed       Reason = "LivenessFailed"
	StartupFailed        Reason = "StartupFailed"
	UnknownState         Reason = "UnknownState"
	InitFailed           Reason = "InitFailed"
	ContainerExited      Reason = "Exited"
	RestartAllContainers Reason = "RestartAllContainers"
	// RestartRequested: the user restarts the container.
	RestartRequested Reason = "RestartRequested"
	RemovedFromSpec  Reason = "RemovedFromSpec"
	Resized          Reason = "Resized"
	SandboxReplaced  Reason = "SandboxReplaced"
	NeverStarted     Reason = "NeverStarted"
	Superseded       Reason = "Superseded"

	CrashLoopBackOff           Reason = "CrashLoopBackOff"
	ProbeStale                 Reason = "ProbeStale"
	NetworkNotReady            Reason = "NetworkNotReady"
	CreateContainerConfigError Reason = "CreateContainerConfigError"
	FailedMount                Reason = "FailedMount"
	CreatePodSandboxError      Reason = "CreatePodSandboxError"
	HostPortConflict           Reason = "HostPortConflict"
	ErrImageNeverPull          Reason = "ErrImageNeverPull"
	InvalidImageName           Reason = "InvalidImageName"
	// These reasons are from the kubelet's admission, like OutOf.
	AppArmor                             Reason = "AppArmor"
	SupplementalGroupsPolicyNotSupported Reason = "SupplementalGroupsPolicyNotSupported"
	SysctlForbidden                      Reason = "SysctlForbidden"
	PodOSNotSupported                    Reason = "PodOSNotSupported"
	PodOSSelectorNodeLabelDoesNotMatch   Reason = "PodOSSelectorNodeLabelDoesNotMatch"
	NodeAffinity                         Reason = "NodeAffinity"
	NodePorts                            Reason = "NodePorts"
	TaintToleration                      Reason = "TaintToleration"
	UnexpectedAdmissionError             Reason = "UnexpectedAdmissionError"
	// PodFeatureUnsupported: a pod of the API server needs a feature that the Node does not declare.
	PodFeatureUnsupported Reason = "PodFeatureUnsupported"
	// UnsupportedPodFeature: a pod of the API server uses a field that podctl does not support.
	UnsupportedPodFeature Reason = "UnsupportedPodFeature"

	ImageAbsent Reason = "ImageAbsent"
	// ImageUnverified: an image is present, but only because of other pods' credentials.
	ImageUnverified Reason = "ImageUnverified"

	PullAlways     Reason = "PullAlways"
	VolumeMissing  Reason = "VolumeMissing"
	ContentChanged Reason = "ContentChanged"
	CgroupMissing  Reason = "CgroupMissing"
	BeforeStart    Reason = "BeforeStart"
	// DevicesNeeded: a container needs devices of device plugins, and has none yet.
	DevicesNeeded Reason = "DevicesNeeded"

	Completed        Reason = "Completed"
	DeadlineExceeded Reason = "DeadlineExceeded"
	Deleted          Reason = "Deleted"
	// Terminated: the agent, or the machine, shuts down (kubelet: nodeShutdownReason).
	Terminated Reason = "Terminated"
	// NodeShutdown: a pod arrived while the machine shuts down (kubelet: NodeShutdownNotAdmittedReason).
	NodeShutdown Reason = "NodeShutdown"
	// Evicted: the machine ran out of memory, disk or process IDs.
	Evicted Reason = "Evicted"
	// Preempting: a critical pod needs the resources of the pod (kubelet: events.PreemptContainer).
	Preempting Reason = "Preempting"
	LogFull    Reason = "LogFull"

	RunningAsWanted Reason = "Running"
	InitDone        Reason = "InitDone"
	InitRunning     Reason = "InitRunning"
)
