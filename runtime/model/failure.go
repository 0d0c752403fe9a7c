package model

// The reasons of failed steps, in the kubelet's words. The reasons of plans contain more of them.
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
