package api

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
)

// Status describes the work of an agent.
type Status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// PID is the ID of the agent's process. StartedAt is when it started.
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"startedAt"`
	// Ready reports whether every source has been read and every pod has had a pass.
	Ready bool `json:"ready"`
	// Applied reports whether the agent also keeps the pods that were applied by hand.
	Applied bool     `json:"applied"`
	Runtime Runtime  `json:"runtime"`
	Sources []Source `json:"sources"`
	Pods    []Pod    `json:"pods"`
	// Cluster is missing for an agent that is not a node of a cluster.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Workloads are the workloads whose pods the agent keeps.
	Workloads []Workload `json:"workloads,omitempty"`
	// Pressure are the pressure conditions of the node.
	Pressure []string `json:"pressure,omitempty"`
	// Devices are the resources of device plugins.
	Devices []model.DeviceResource `json:"devices,omitempty"`
	// Problems are the conflicts between sources: pods that two of them want.
	Problems []Problem `json:"problems,omitempty"`
}

// Reloaded is the result of a reload.
type Reloaded struct {
	// Reading are the sources that are still being read.
	Reading []string `json:"reading,omitempty"`
}

// Runtime is whether the container runtime answers.
type Runtime struct {
	Endpoint string `json:"endpoint"`
	Answers  bool   `json:"answers"`
	// Since is when this state began. It is zero if the runtime was never called.
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
}

// Source is a place that provides the wanted pods.
type Source struct {
	Name string `json:"name"`
	// Complete reports whether the source has been read completely.
	Complete bool `json:"complete"`
	// Pods and Workloads are the numbers of wanted pods and workloads. Objects is the number of stored objects.
	Pods      int       `json:"pods"`
	Workloads int       `json:"workloads,omitempty"`
	Objects   int       `json:"objects,omitempty"`
	Problems  []Problem `json:"problems,omitempty"`
	// Takeovers are the objects that were applied by hand and belong to the source since. Deleting the file deletes
	// them.
	Takeovers []Problem `json:"takeovers,omitempty"`
}

// Problem is a problem of a source.
type Problem struct {
	File  string    `json:"file"`
	Text  string    `json:"text"`
	Since time.Time `json:"since,omitzero"`
}

// Workload is a workload whose pods the agent keeps.
type Workload struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Source is the source of the workload. It is empty for one that was applied by hand.
	Source string `json:"source,omitempty"`
	// File is the manifest of the workload.
	File string `json:"file,omitempty"`
	// Pods is the number of pods that the workload wants now.
	Pods int `json:"pods"`
	// Waiting lists the events that the workload waits for. Error is the reason why its state is unknown.
	Waiting []string `json:"waiting,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Pod is one pod that the agent keeps.
type Pod struct {
	model.PodRef
	// Source is the source of the pod. It is empty for one that was applied by hand.
	Source string `json:"source,omitempty"`
	// File is the manifest of the pod.
	File string `json:"file,omitempty"`
	// Generation is metadata.generation of the newest version of a pod of the API server; zero for other pods.
	Generation int64 `json:"generation,omitempty"`
	// CurrentPass is the running pass: sync, end, terminate, stop or evict. It is empty if there is none.
	CurrentPass string `json:"currentPass,omitempty"`
	// Deleting reports whether the pod is being deleted, here or by its source.
	Deleting bool `json:"deleting,omitempty"`
	// BlockedBy is the UID of the pod with the same name that must be gone first.
	BlockedBy string `json:"blockedBy,omitempty"`
	// LastPass is when the last pass ended. NextPass is when the next one begins if no event comes before.
	LastPass time.Time `json:"lastPass,omitzero"`
	NextPass time.Time `json:"nextPass,omitzero"`
	// Error is the reason why the last pass failed. Waiting lists the events that the pod or its containers wait for.
	Error   string   `json:"error,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
	// Rejection is the reason why the pod was not admitted. It is missing for an admitted pod.
	Rejection *model.Rejection `json:"rejection,omitempty"`
	// Eviction is the reason why the pod was evicted. It is missing for a pod that was not evicted.
	Eviction *model.Eviction `json:"eviction,omitempty"`
	// Conditions are those of a pod of the API server in the API; nil if they are unknown.
	Conditions []v1.PodCondition `json:"conditions,omitzero"`
	// Probes are the verdicts of the probes of running containers.
	Probes []Probe `json:"probes,omitempty"`
}

// Probe is the state of one probe of a running container.
type Probe struct {
	Container   string          `json:"container"`
	ContainerID string          `json:"containerID"`
	Type        model.ProbeType `json:"type"`
	// Result is the verdict. Since is when it was reached.
	Result model.ProbeResult `json:"result"`
	Since  time.Time         `json:"since,omitzero"`
	// LastProbeTime is when the probe last ran. It is missing if the probe never ran.
	LastProbeTime time.Time `json:"lastProbeTime,omitzero"`
	// Message is the message of the last result.
	Message string `json:"message,omitempty"`
}
