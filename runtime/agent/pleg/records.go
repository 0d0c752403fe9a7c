package pleg

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
)

// records are the containers of the last list by ID.
type records map[string]record

type record struct {
	pod   types.UID
	state runtimeapi.ContainerState
}

// replace sets a new list and returns the sorted pods with a container that was added, removed or changed its state
// (kubelet: GenericPLEG.Relist).
func (r records) replace(list []*runtimeapi.Container) []types.UID {
	var changed []types.UID
	there := make(map[string]bool, len(list))
	for _, c := range list {
		now := record{pod: types.UID(c.GetLabels()[criconfig.LabelPodUID]), state: c.GetState()}
		there[c.GetId()] = true
		if before, known := r[c.GetId()]; !known || before != now {
			r[c.GetId()] = now
			changed = append(changed, now.pod)
		}
	}
	for id, before := range r {
		if !there[id] {
			delete(r, id)
			changed = append(changed, before.pod)
		}
	}
	slices.Sort(changed)
	return slices.DeleteFunc(slices.Compact(changed), func(uid types.UID) bool { return uid == "" })
}

// update returns the pod of an event, and updates the record of its container as the next list will show it. The event
// of a sandbox has the sandbox's ID.
func (r records) update(event *runtimeapi.ContainerEventResponse) (types.UID, bool) {
	id, sandbox := event.GetContainerId(), event.GetPodSandboxStatus()
	uid := types.UID(sandbox.GetMetadata().GetUid())
	if uid == "" {
		uid = r[id].pod
	}
	if id != sandbox.GetId() {
		r.setState(id, uid, event.GetContainerEventType())
	}
	return uid, uid != ""
}

// podOf returns the pod of a container whose process has ended. It does not change the record: the next list still
// shows the container as running if the runtime has not cleaned up.
func (r records) podOf(id string) (types.UID, bool) {
	c, known := r[id]
	return c.pod, known && c.pod != ""
}

func (r records) setState(id string, uid types.UID, happened runtimeapi.ContainerEventType) {
	switch happened {
	case runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT:
		r[id] = record{uid, runtimeapi.ContainerState_CONTAINER_CREATED}
	case runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT:
		r[id] = record{uid, runtimeapi.ContainerState_CONTAINER_RUNNING}
	case runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT:
		r[id] = record{uid, runtimeapi.ContainerState_CONTAINER_EXITED}
	case runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
		delete(r, id)
	}
}
