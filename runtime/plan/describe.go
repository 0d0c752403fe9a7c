package plan

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/runtime/model"
)

// Verb is the one word for what a step does, in plans and in progress lines
// alike.
func (k Kind) Verb() string {
	switch k {
	case CreateCgroup, RemoveCgroup:
		return strings.ToLower(strings.TrimSuffix(string(k), "Cgroup"))
	case PrepareVolume, UpdateVolume, RemoveVolume:
		return strings.ToLower(strings.TrimSuffix(string(k), "Volume"))
	case PullImage:
		return "pull"
	case CheckContainer:
		return "check"
	case RunSandbox:
		return "create"
	case StartContainer:
		return "start"
	case StopContainer, StopSandbox:
		return "stop"
	case RemoveContainer, RemoveSandbox:
		return "remove"
	case UpdateContainer, UpdatePod:
		return "update"
	case ArchiveLogs:
		return "archive"
	case RotateLog:
		return "rotate"
	}
	return strings.ToLower(string(k))
}

// Object is what a step acts on, as people call it.
func (s *Step) Object() string {
	switch s.Kind {
	case CreateCgroup, RemoveCgroup:
		return "cgroup"
	case PrepareVolume, UpdateVolume:
		return "volume " + s.Volume
	case RemoveVolume:
		return "volumes"
	case PullImage:
		return s.Image
	case RunSandbox, StopSandbox, RemoveSandbox:
		return "sandbox"
	case UpdatePod:
		return "pod"
	case ArchiveLogs:
		return "logs"
	case RotateLog:
		return "log " + s.Container
	case CheckContainer, StartContainer, StopContainer, RemoveContainer, UpdateContainer:
	}
	return s.Container
}

// Detail is what else is worth knowing of a step: the attempt, the record, the
// grace period and the hooks.
func (s *Step) Detail() string {
	switch s.Kind {
	case RunSandbox:
		return fmt.Sprintf("attempt %d", s.Attempt)
	case StartContainer:
		return withHook(fmt.Sprintf("attempt %d", s.Attempt), "postStart", s.PostStart)
	case StopContainer:
		return withHook(fmt.Sprintf("%s  grace %ds", model.ShortID(s.ContainerID), *s.GracePeriodSeconds), "preStop", s.PreStop)
	case RemoveContainer:
		return fmt.Sprintf("%s  attempt %d", model.ShortID(s.ContainerID), s.Attempt)
	case StopSandbox, RemoveSandbox:
		return model.ShortID(s.SandboxID)
	case CreateCgroup, RemoveCgroup, PrepareVolume, UpdateVolume, RemoveVolume, PullImage, CheckContainer,
		UpdateContainer, UpdatePod, ArchiveLogs, RotateLog:
	}
	return ""
}

func withHook(text, name, handler string) string {
	if handler == "" {
		return text
	}
	return fmt.Sprintf("%s, %s %s", text, name, handler)
}
