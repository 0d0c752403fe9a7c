package api

import (
	"time"

	"github.com/podctl/podctl/runtime/model"
)

// Status is what an agent does and waits for.
type Status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// PID is the agent's process, StartedAt when it began.
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"startedAt"`
	// Ready reports whether every source has been read and every pod has had a pass.
	Ready bool `json:"ready"`
	// Applied reports whether the agent keeps the pods that were applied by hand, too.
	Applied bool     `json:"applied"`
	Runtime Runtime  `json:"runtime"`
	Sources []Source `json:"sources"`
	Pods    []Pod    `json:"pods"`
	// Workloads are those whose pods the agent keeps.
	Workloads []Workload `json:"workloads,omitempty"`
	// Pressure are the conditions of a node that is short of something.
	Pressure []string `json:"pressure,omitempty"`
	// Problems are those between sources: pods that two of them want.
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
	// Since is when that began; zero if it was never asked.
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
}

// Source is a place that says which pods shall be there.
type Source struct {
	Name string `json:"name"`
	// Read reports whether it has been read completely.
	Read bool `json:"read"`
	// Pods is how many pods it wants, Workloads how many workloads, and Objects how many objects it has stored.
	Pods      int       `json:"pods"`
	Workloads int       `json:"workloads,omitempty"`
	Objects   int       `json:"objects,omitempty"`
	Problems  []Problem `json:"problems,omitempty"`
	// Takeovers are what was applied by hand and is the source's since: deleting the file deletes it.
	Takeovers []Problem `json:"takeovers,omitempty"`
}

// Problem is something wrong with what a source has.
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
	// Source is the source that brought it; empty for one that was applied by hand.
	Source string `json:"source,omitempty"`
	// File is the manifest it came from.
	File string `json:"file,omitempty"`
	// Pods is how many pods it shall have now.
	Pods int `json:"pods"`
	// Waiting is what it waits for, Error why nothing is known of it.
	Waiting []string `json:"waiting,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Pod is one pod that the agent keeps.
type Pod struct {
	model.PodRef
	// Source is the source that brought it; empty for one that was applied by hand.
	Source string `json:"source,omitempty"`
	// File is the manifest it came from.
	File string `json:"file,omitempty"`
	// Doing is the pass that runs: sync, terminate, stop or evict; empty for none.
	Doing string `json:"doing,omitempty"`
	// Deleting reports whether the pod is being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// WaitsFor is the uid of the pod of the same name that has to be gone first.
	WaitsFor string `json:"waitsFor,omitempty"`
	// LastPass is when its last pass ended, NextPass when the next one begins if nothing happens.
	LastPass time.Time `json:"lastPass,omitzero"`
	NextPass time.Time `json:"nextPass,omitzero"`
	// Error is why its last pass failed, Waiting what holds it or its containers.
	Error   string   `json:"error,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
	// Rejection is why the pod was not admitted; missing for one that was.
	Rejection *model.Rejection `json:"rejection,omitempty"`
	// Eviction is why the pod was evicted; missing for one that was not.
	Eviction *model.Eviction `json:"eviction,omitempty"`
	// Probes are the verdicts of the probes of containers that run.
	Probes []Probe `json:"probes,omitempty"`
}

// Probe is what an agent knows of one probe of a container that runs.
type Probe struct {
	Container   string          `json:"container"`
	ContainerID string          `json:"containerID"`
	Type        model.ProbeType `json:"type"`
	// Result is the verdict, Since from when on it is what it is.
	Result model.ProbeResult `json:"result"`
	Since  time.Time         `json:"since,omitzero"`
	// AskedAt is when the probe was asked last; missing if it was not.
	AskedAt time.Time `json:"askedAt,omitzero"`
	// Message is what the last answer said.
	Message string `json:"message,omitempty"`
}
