package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
)

// Kind is the kind of a step. Every change that podctl makes has one of these kinds.
type Kind string

// The kinds of step.
const (
	// CreateCgroup creates the pod's own cgroup with its limits.
	CreateCgroup Kind = "CreateCgroup"
	// PrepareVolume prepares a volume for mounting, or checks a host path.
	PrepareVolume Kind = "PrepareVolume"
	// UpdateVolume writes new content into a volume in use, all files at once. Containers that mount a subPath keep the
	// old content, as under a kubelet.
	UpdateVolume Kind = "UpdateVolume"
	// RemoveVolume unmounts and removes the pod's volumes.
	RemoveVolume Kind = "RemoveVolume"
	// AllocateDevices allocates devices of device plugins for a container, which keeps them until the pod is gone.
	AllocateDevices Kind = "AllocateDevices"
	// PullImage pulls one image.
	PullImage Kind = "PullImage"
	// CheckContainer checks that a container can be configured: references, user, mounts. It changes nothing and comes
	// before anything is stopped.
	CheckContainer Kind = "CheckContainer"
	RunSandbox     Kind = "RunSandbox"
	StopSandbox    Kind = "StopSandbox"
	RemoveSandbox  Kind = "RemoveSandbox"
	// StartContainer creates and starts a container and runs its postStart hook.
	StartContainer Kind = "StartContainer"
	// StopContainer runs the preStop hook and stops a container.
	StopContainer   Kind = "StopContainer"
	RemoveContainer Kind = "RemoveContainer"
	// UpdateContainer changes cpu and memory of a running container.
	UpdateContainer Kind = "UpdateContainer"
	// UpdatePod changes the limits of the pod's own cgroup.
	UpdatePod Kind = "UpdatePod"
	// RemoveCgroup removes the pod's own cgroup once no container runs in it.
	RemoveCgroup Kind = "RemoveCgroup"
	// ArchiveLogs renames the log directory of a deleted pod, so that a pod with the same name starts at attempt zero.
	ArchiveLogs Kind = "ArchiveLogs"
	// RotateLog renames a container's log and makes the runtime reopen it.
	RotateLog Kind = "RotateLog"
)

// OnFailure is the effect of a failed step on the others.
type OnFailure string

// The effects of a failed step.
const (
	// Abort ends the pass: no other step begins.
	Abort OnFailure = "abort"
	// Reject also ends the pass, and rejects the pod for good, as a kubelet does.
	Reject OnFailure = "reject"
	// SkipContainer skips the steps that depend on this one. All others continue.
	SkipContainer OnFailure = "skipContainer"
	// Continue also lets the steps that depend on this one continue.
	Continue OnFailure = "continue"
)

// Logs selects the logs that are removed with a record.
type Logs int

// The logs that are removed with a record. If a container continues to run under the same name, the logs of its newest
// record stay: they carry the restart count, and `logs --previous` shows them.
const (
	// KeepLogs removes none.
	KeepLogs Logs = iota
	// RemoveOwnLogs removes those of the run.
	RemoveOwnLogs
	// RemoveOlderLogs removes those of runs older than all records.
	RemoveOlderLogs
	// RemoveSupersededLogs removes those of the run and of earlier runs, because a newer record has replaced it.
	RemoveSupersededLogs
)

// Step is one action of a pass. A step refers to objects that do not exist yet (a sandbox, an image ID) by the step
// that creates them. Only the executor knows their IDs.
type Step struct {
	// ID is unique in the plan, for example start-app.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Needs are the steps that come before this one. Steps without a path between them may overlap. Documents contain
	// Needs as four lists, which are never read back: podctl executes a newly made plan.
	Needs     Needs     `json:"-"`
	OnFailure OnFailure `json:"onFailure"`

	Container     string                `json:"container,omitempty"`
	ContainerType podspec.ContainerType `json:"containerType,omitempty"`
	// ContainerID is the record that is stopped, removed or updated.
	ContainerID string `json:"containerID,omitempty"`
	// SandboxID is the sandbox that is stopped or removed, or in which a container starts. It is empty if the plan's
	// own RunSandbox step creates it.
	SandboxID string `json:"sandboxID,omitempty"`
	// Attempt is the attempt of the sandbox or container to create.
	Attempt uint32 `json:"attempt,omitempty"`
	Image   string `json:"image,omitempty"`
	Volume  string `json:"volume,omitempty"`
	// Devices are the devices to allocate.
	Devices []model.DeviceSet `json:"devices,omitempty"`
	// GracePeriodSeconds is the time a container has to end, including its preStop hook.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// PreStop and PostStart name the handler that runs: exec, httpGet, sleep, tcpSocket. The executor takes its content
	// from the manifest, never from a plan.
	PreStop   string `json:"preStop,omitempty"`
	PostStart string `json:"postStart,omitempty"`
	// Logs are the logs to remove with a record.
	Logs Logs `json:"-"`
	// RestartsAll reports whether a record is removed because all containers restart. After that, only the checkpoint
	// shows that the container ran.
	RestartsAll bool `json:"-"`

	Reason  model.Reason `json:"reason"`
	Message string       `json:"message"`
	// Changes are the fields that made the step necessary.
	Changes []diff.Change `json:"changes,omitempty"`
	// Unchanged counts the other fields, which are the same.
	Unchanged int `json:"unchanged,omitempty"`
}

// MarshalJSON writes the needs of a step as the lists of the documents. The lists stand among the other fields, so the
// struct repeats the fields after them.
func (s Step) MarshalJSON() ([]byte, error) {
	type fields Step
	return json.Marshal(struct {
		ID    string   `json:"id"`
		Kind  Kind     `json:"kind"`
		After []string `json:"after,omitempty"`
		fields
		StopAfter   []string      `json:"stopAfter,omitempty"`
		CreateAfter []string      `json:"createAfter,omitempty"`
		AfterExit   []string      `json:"afterExit,omitempty"`
		PreStop     string        `json:"preStop,omitempty"`
		PostStart   string        `json:"postStart,omitempty"`
		Reason      model.Reason  `json:"reason"`
		Message     string        `json:"message"`
		Changes     []diff.Change `json:"changes,omitempty"`
		Unchanged   int           `json:"unchanged,omitempty"`
	}{
		ID: s.ID, Kind: s.Kind, After: s.Needs.Of(Begin).steps(), fields: fields(s),
		StopAfter: s.Needs.Of(Stop).steps(), CreateAfter: s.Needs.Of(Create).steps(),
		AfterExit: s.Needs.where(func(e Edge) bool { return e.Until == Exited }).steps(),
		PreStop:   s.PreStop, PostStart: s.PostStart,
		Reason: s.Reason, Message: s.Message, Changes: s.Changes, Unchanged: s.Unchanged,
	})
}

// kinds describes each kind of step. verb is for plans and progress lines. object is the name of the object if the step
// has none. does is the action that the step alone has on its object.
var kinds = map[Kind]struct { //nolint:gochecknoglobals // a table
	verb, object string
	does         Action
}{
	CreateCgroup:    {"create", "cgroup", Prepared},
	PrepareVolume:   {"prepare", "volume", Prepared},
	UpdateVolume:    {"update", "volume", Updated},
	RemoveVolume:    {"remove", "volumes", CleanedUp},
	AllocateDevices: {"allocate", "devices", Prepared},
	PullImage:       {"pull", "", Prepared},
	CheckContainer:  {"check", "", Prepared},
	RunSandbox:      {"create", "sandbox", Started},
	StopSandbox:     {"stop", "sandbox", Stopped},
	RemoveSandbox:   {"remove", "sandbox", Removed},
	StartContainer:  {"start", "", Started},
	StopContainer:   {"stop", "", Stopped},
	RemoveContainer: {"remove", "", Removed},
	UpdateContainer: {"update", "", Updated},
	UpdatePod:       {"update", "pod", Updated},
	RemoveCgroup:    {"remove", "cgroup", CleanedUp},
	ArchiveLogs:     {"archive", "logs", CleanedUp},
	RotateLog:       {"rotate", "log", Rotated},
}

// Verb returns the verb for the kind. A saved plan may contain any kind.
func (k Kind) Verb() string { return cmp.Or(kinds[k].verb, strings.ToLower(string(k))) }

// Object returns the name of the step's object for users.
func (s *Step) Object() string {
	switch object := kinds[s.Kind].object; {
	case object == "volume":
		return "volume " + s.Volume
	case object == "log":
		return "log " + s.Container
	case object == "devices":
		return "devices of " + s.Container
	case object != "":
		return object
	case s.Kind == PullImage:
		return s.Image
	}
	return s.Container
}

// Detail returns details of a step: the attempt, the record, the grace period and the hooks.
func (s *Step) Detail() string {
	switch s.Kind {
	case RunSandbox:
		return fmt.Sprintf("attempt %d", s.Attempt)
	case StartContainer:
		return withHook(fmt.Sprintf("attempt %d", s.Attempt), "postStart", s.PostStart)
	case StopContainer:
		text := fmt.Sprintf("%s  grace %ds", model.ShortID(s.ContainerID), *s.GracePeriodSeconds)
		return withHook(text, "preStop", s.PreStop)
	case RemoveContainer:
		return fmt.Sprintf("%s  attempt %d", model.ShortID(s.ContainerID), s.Attempt)
	case StopSandbox, RemoveSandbox:
		return model.ShortID(s.SandboxID)
	case AllocateDevices:
		return model.DeviceText(s.Devices)
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
