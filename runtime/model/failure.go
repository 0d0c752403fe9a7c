package model

// The reasons of steps that failed, in a kubelet's words. Some of a plan's reasons are among
// them.
const (
	RunContainerError        Reason = "RunContainerError"
	CreateContainerError     Reason = "CreateContainerError"
	PostStartHookError       Reason = "PostStartHookError"
	KillContainerError       Reason = "KillContainerError"
	KillPodSandboxError      Reason = "KillPodSandboxError"
	FailedCreatePodContainer Reason = "FailedCreatePodContainer"
	ResizePodInPlaceError    Reason = "ResizePodInPlaceError"
	ErrImagePull             Reason = "ErrImagePull"
	ImageInspectError        Reason = "ImageInspectError"
	ImagePullBackOff         Reason = "ImagePullBackOff"
	// Interrupted: the user ended podctl during the step.
	Interrupted Reason = "Interrupted"
)
