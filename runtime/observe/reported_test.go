package observe

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// readyStatus is the status of a container that has started and is ready.
func readyStatus(id string) v1.ContainerStatus {
	return v1.ContainerStatus{
		ContainerID: "containerd://" + id, Started: new(true), Ready: true,
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}
}

// TestReported checks which containers get records of probes from the status in the API. The pod has the containers a,
// without a record, and b, whose readiness probe has failed.
func TestReported(t *testing.T) {
	const (
		failed = "map[b:map[readiness:Failure]]"
		ready  = "map[readiness:Success startup:Success]"
	)
	of := func(statuses ...v1.ContainerStatus) *v1.PodStatus { return &v1.PodStatus{ContainerStatuses: statuses} }
	exited, unready := readyStatus("a"), readyStatus("a")
	exited.State, unready.Started, unready.Ready = v1.ContainerState{}, nil, false
	for name, c := range map[string]struct {
		status *v1.PodStatus
		want   string
	}{
		"no pod in the API":         {nil, failed},
		"no container":              {of(), failed},
		"ready":                     {of(readyStatus("a")), "map[a:" + ready + " b:map[readiness:Failure]]"},
		"an init container":         {&v1.PodStatus{InitContainerStatuses: of(readyStatus("a")).ContainerStatuses}, "map[a:" + ready + " b:map[readiness:Failure]]"},
		"a record of its own":       {of(readyStatus("b")), "map[b:map[readiness:Failure startup:Success]]"},
		"not ready":                 {of(unready), failed},
		"exited":                    {of(exited), failed},
		"an earlier container":      {of(readyStatus("old")), failed},
		"a container without an id": {of(v1.ContainerStatus{Ready: true, State: readyStatus("").State}), failed},
	} {
		s := &snapshot.Pod{Checkpoint: &state.Checkpoint{}}
		s.Checkpoint.Probes = map[string]map[model.ProbeType]model.ProbeRecord{
			"b": {model.Readiness: {Result: model.ProbeFailure}},
		}
		for _, id := range []string{"a", "b"} {
			s.Containers = append(s.Containers, snapshot.Container{Status: &runtimeapi.ContainerStatus{Id: id}})
		}
		desired := &podspec.Desired{}
		addReported(func(d *podspec.Desired) *v1.PodStatus {
			if d != desired {
				t.Errorf("%s: another pod", name)
			}
			return c.status
		}, desired, s)
		if got := resultsOf(s.Checkpoint); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// resultsOf returns the results of a checkpoint by container.
func resultsOf(j *state.Checkpoint) string {
	all := map[string]map[model.ProbeType]model.ProbeResult{}
	for id, records := range j.Probes {
		all[id] = map[model.ProbeType]model.ProbeResult{}
		for kind := range records {
			all[id][kind] = records[kind].Result
		}
	}
	return fmt.Sprint(all)
}

// TestNothingReported checks that a pod without records, without a manifest or outside of a cluster stays as it is.
func TestNothingReported(t *testing.T) {
	status := func(*podspec.Desired) *v1.PodStatus {
		return &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{readyStatus("a")}}
	}
	for name, c := range map[string]struct {
		reported func(*podspec.Desired) *v1.PodStatus
		desired  *podspec.Desired
		want     int
	}{
		"a node of a cluster":  {status, &podspec.Desired{}, 1},
		"outside of a cluster": {nil, &podspec.Desired{}, 0},
		"no manifest":          {status, nil, 0},
	} {
		s := &snapshot.Pod{Checkpoint: &state.Checkpoint{}}
		s.Containers = []snapshot.Container{{Status: &runtimeapi.ContainerStatus{Id: "a"}}}
		if addReported(c.reported, c.desired, s); len(s.Checkpoint.Probes) != c.want {
			t.Errorf("%s: %v", name, s.Checkpoint.Probes)
		}
	}
}
