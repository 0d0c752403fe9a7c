package observe

import (
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// addReported adds records of probes that have succeeded by the status of the pod in the API, for running containers
// without records of their own. Otherwise a container that a kubelet has started would become unready until its probes
// have run (kubelet: setReadyStateOnKubeletRestart).
func addReported(reported func(*podspec.Desired) *v1.PodStatus, desired *podspec.Desired, s *snapshot.Pod) {
	if reported == nil || desired == nil {
		return
	}
	running := map[string]bool{}
	for i := range s.Containers {
		running[s.Containers[i].Status.GetId()] = true
	}
	status := reported(desired)
	if status == nil {
		return
	}
	for _, list := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			_, id, _ := strings.Cut(list[i].ContainerID, "://")
			if running[id] && list[i].State.Running != nil {
				addProbes(s.Checkpoint, id, model.ReportedProbes(&list[i]))
			}
		}
	}
}

// addProbes adds records to those of a container. Existing ones stay.
func addProbes(j *state.Checkpoint, id string, records map[model.ProbeType]model.ProbeRecord) {
	maps.Copy(records, j.Probes[id])
	if len(records) == 0 {
		return
	}
	if j.Probes == nil {
		j.Probes = map[string]map[model.ProbeType]model.ProbeRecord{}
	}
	j.Probes[id] = records
}
