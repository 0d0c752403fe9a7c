package gc

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
)

// GarbageKind is a kind of object that can be removed.
type GarbageKind string

// Kinds of garbage.
const (
	// GarbageContainer is the record of an exited container that has a newer record.
	GarbageContainer GarbageKind = "Container"
	// GarbageSandbox is a sandbox with its records.
	GarbageSandbox GarbageKind = "Sandbox"
	// GarbageFiles is the directory of a removed pod: volumes and the like.
	GarbageFiles GarbageKind = "Files"
	// GarbageLogs are the logs of a deleted pod.
	GarbageLogs GarbageKind = "Logs"
	// GarbageClaim is the data of a persistent volume claim. Its Pod has only the namespace.
	GarbageClaim GarbageKind = "Claim"
	// GarbageEvents are the events of a deleted pod.
	GarbageEvents GarbageKind = "Events"
	// GarbageFullLog is the log of a running container. It is rotated; only the oldest rotated log is removed.
	GarbageFullLog GarbageKind = "FullLog"
)

// Garbage is an object of podctl that is no longer needed.
type Garbage struct {
	Kind GarbageKind `json:"kind"`
	// Pod is the owner, as far as it is known: at least the uid.
	Pod model.PodRef `json:"pod"`
	// Name is the name of a container, ID the id of a container or sandbox, and Path a directory.
	Name    string `json:"container,omitempty"`
	ID      string `json:"id,omitempty"`
	Path    string `json:"path,omitempty"`
	Claim   string `json:"claim,omitempty"`
	Attempt uint32 `json:"attempt,omitempty"`
	Reason  string `json:"reason"`
	// Size is in bytes, as far as it is known.
	Size int64 `json:"size"`
	// spare is set for a record that is removed only if there are too many.
	spare bool
}

// Describe describes a piece of garbage.
func (g *Garbage) Describe() string {
	switch g.Kind {
	case GarbageContainer:
		return fmt.Sprintf("container %s, attempt %d", g.Name, g.Attempt)
	case GarbageSandbox:
		return "sandbox " + model.ShortID(g.ID)
	case GarbageFiles:
		return "volumes and files"
	case GarbageLogs:
		return "logs"
	case GarbageEvents:
		return "events"
	case GarbageClaim:
		return fmt.Sprintf("claim %s/%s", g.Pod.Namespace, g.Claim)
	case GarbageFullLog:
		return fmt.Sprintf("log of container %s, attempt %d", g.Name, g.Attempt)
	}
	return cmp.Or(g.Name, g.ID)
}

// PodText names the pod, or its uid if the name is unknown. It is empty for a claim, because Describe includes the
// namespace.
func (g *Garbage) PodText() string {
	if g.Pod.Name == "" {
		return string(g.Pod.UID)
	}
	return g.Pod.String()
}

// is reports whether two pieces of garbage are the same object.
func (g *Garbage) is(other Garbage) bool {
	return g.Kind == other.Kind && g.Pod.UID == other.Pod.UID && g.ID == other.ID && g.Path == other.Path
}

// leftovers is the state of one pod in the runtime and on disk.
type leftovers struct {
	uid        types.UID
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
	// checkpoint and dir report which files of the pod exist on disk.
	checkpoint, dir bool
	// shared reports whether a kubelet is running. The files may then belong to it, because the layout is the same.
	shared bool
}

// unmanaged reports whether the pod has objects in the runtime, but none of podctl.
func (l *leftovers) unmanaged() bool {
	for _, s := range l.sandboxes {
		if criconfig.MadeByPodctl(s.GetAnnotations()) {
			return false
		}
	}
	for _, c := range l.containers {
		if criconfig.MadeByPodctl(c.GetAnnotations()) {
			return false
		}
	}
	return len(l.sandboxes)+len(l.containers) > 0
}

// garbage returns the objects of the pod that are no longer needed, in the order of their removal.
func (l *leftovers) garbage() []Garbage {
	observe.NewestFirst(l.sandboxes, l.containers)
	if l.checkpoint {
		dead := l.deadContainers()
		return append(dead, l.oldSandboxes(dead)...)
	}
	orphans := l.orphans()
	found := orphans
	for _, g := range l.deadContainers() {
		if !slices.ContainsFunc(orphans, func(o Garbage) bool { return o.ID == l.sandboxOf(g.ID) }) {
			found = append(found, g)
		}
	}
	if l.dir && !l.shared && len(orphans) == len(l.sandboxes) && l.allIn(orphans) {
		found = append(found, Garbage{Kind: GarbageFiles, Pod: l.ref(), Reason: "the pod is gone"})
	}
	return found
}

func (l *leftovers) ref() model.PodRef {
	ref := model.PodRef{UID: l.uid}
	if len(l.sandboxes) > 0 {
		meta := l.sandboxes[0].GetMetadata()
		ref.Namespace, ref.Name = meta.GetNamespace(), meta.GetName()
	}
	return ref
}

// deadContainers returns the records of exited containers, except the newest of each name, which has the restart count
// and the result of the last run.
func (l *leftovers) deadContainers() []Garbage {
	var found []Garbage
	newest := map[string]*runtimeapi.Container{}
	for _, c := range l.containers {
		name := c.GetMetadata().GetName()
		switch {
		case c.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED:
		case newest[name] == nil:
			newest[name] = c
		case criconfig.MadeByPodctl(c.GetAnnotations()):
			found = append(found, Garbage{
				Kind: GarbageContainer, Pod: l.ref(), Name: name, ID: c.GetId(), Attempt: c.GetMetadata().GetAttempt(),
				Reason: fmt.Sprintf("attempt %d ended later", newest[name].GetMetadata().GetAttempt()),
			})
		}
	}
	return found
}

// oldSandboxes returns the sandboxes that have a newer one and no records left after the dead containers are removed.
func (l *leftovers) oldSandboxes(dead []Garbage) []Garbage {
	var found []Garbage
	for i, s := range l.sandboxes {
		ready := s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
		if i == 0 || ready || !criconfig.MadeByPodctl(s.GetAnnotations()) || !l.emptiedBy(s, dead) {
			continue
		}
		found = append(found, l.sandbox(s, "a newer sandbox has replaced it"))
	}
	return found
}

func (l *leftovers) emptiedBy(s *runtimeapi.PodSandbox, dead []Garbage) bool {
	for _, c := range l.in(s) {
		if !slices.ContainsFunc(dead, func(g Garbage) bool { return g.ID == c.GetId() }) {
			return false
		}
	}
	return true
}

// orphans returns the sandboxes of a pod without a checkpoint in which no container runs or is unmanaged. A container
// in an unknown state may run.
func (l *leftovers) orphans() []Garbage {
	var found []Garbage
	for _, s := range l.sandboxes {
		keep := slices.ContainsFunc(l.in(s), func(c *runtimeapi.Container) bool {
			over := c.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED ||
				c.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED
			return !over || !criconfig.MadeByPodctl(c.GetAnnotations())
		})
		if !keep && criconfig.MadeByPodctl(s.GetAnnotations()) {
			found = append(found, l.sandbox(s, "podctl has no checkpoint of the pod, and nothing runs in it"))
		}
	}
	return found
}

func (l *leftovers) sandbox(s *runtimeapi.PodSandbox, reason string) Garbage {
	return Garbage{
		Kind:    GarbageSandbox,
		Pod:     l.ref(),
		ID:      s.GetId(),
		Attempt: s.GetMetadata().GetAttempt(),
		Reason:  reason,
	}
}

// in returns the containers of a sandbox.
func (l *leftovers) in(s *runtimeapi.PodSandbox) []*runtimeapi.Container {
	return slices.DeleteFunc(slices.Clone(l.containers), func(c *runtimeapi.Container) bool {
		return c.GetPodSandboxId() != s.GetId()
	})
}

func (l *leftovers) sandboxOf(containerID string) string {
	for _, c := range l.containers {
		if c.GetId() == containerID {
			return c.GetPodSandboxId()
		}
	}
	return ""
}

// allIn reports whether every container is in one of the sandboxes.
func (l *leftovers) allIn(sandboxes []Garbage) bool {
	return !slices.ContainsFunc(l.containers, func(c *runtimeapi.Container) bool {
		return !slices.ContainsFunc(sandboxes, func(g Garbage) bool { return g.ID == c.GetPodSandboxId() })
	})
}

// sharesLog reports whether another record of the container uses the same log: the attempts of init containers start at
// zero in a new sandbox.
func (l *leftovers) sharesLog(g *Garbage) bool {
	return slices.ContainsFunc(l.containers, func(c *runtimeapi.Container) bool {
		return c.GetId() != g.ID && c.GetMetadata().GetName() == g.Name && c.GetMetadata().GetAttempt() == g.Attempt
	})
}
