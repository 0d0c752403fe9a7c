package inspect

import (
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/state"
)

// podDocument is the output of `describe -o json` for one pod.
type podDocument struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Pod        model.PodRef `json:"pod"`
	// Manager is the program that manages the pod, if it is not podctl.
	Manager     string            `json:"manager,omitempty"`
	Source      string            `json:"source,omitempty"`
	Set         string            `json:"set,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Deletion    *time.Time        `json:"deletionTimestamp,omitempty"`
	Spec        v1.PodSpec        `json:"spec"`
	Status      v1.PodStatus      `json:"status"`
	Probes      []probeState      `json:"probes"`
	Events      []state.PodEvent  `json:"events"`
	// Next is the result of the next apply. It is nil if it is not known.
	Next *nextDocument `json:"nextApply,omitempty"`
}

type probeState struct {
	Container string            `json:"container"`
	Type      model.ProbeType   `json:"type"`
	Probe     string            `json:"probe"`
	Result    model.ProbeResult `json:"result,omitempty"`
	Run       int32             `json:"run,omitempty"`
	CountedAt *time.Time        `json:"countedAt,omitempty"`
}

type nextDocument struct {
	Summary string   `json:"summary"`
	Drift   []string `json:"drift,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// documents writes one pod as an object, and several pods as a list.
func (r *describer) documents(ctx context.Context, desired []*podspec.Desired, pods []*v1.Pod) error {
	docs, outcomes := make([]*podDocument, len(pods)), make([]error, len(pods))
	for i, d := range desired {
		docs[i], outcomes[i] = r.document(ctx, d, pods[i])
	}
	var value any = docs[0]
	if len(docs) > 1 {
		value = view.List("PodDescriptionList", docs)
	}
	return exit.Join(ctx, append(outcomes, terminal.WriteDocument(r.io.Out, r.o.output, value))...)
}

// document returns everything that describe shows of a pod. With an error it returns the parts that are known.
func (r *describer) document(ctx context.Context, d *podspec.Desired, pod *v1.Pod) (*podDocument, error) {
	doc := &podDocument{
		APIVersion:  model.APIVersion,
		Kind:        "PodDescription",
		Pod:         model.RefOf(pod),
		Manager:     pod.Annotations[observe.AnnotationManager],
		Source:      d.Source,
		Set:         d.Set,
		Labels:      pod.Labels,
		Annotations: pod.Annotations,
		Spec:        pod.Spec,
		Status:      pod.Status,
		Probes:      probeStates(pod, r.records(pod)),
		Events:      []state.PodEvent{},
	}
	if at := pod.DeletionTimestamp; at != nil {
		doc.Deletion = &at.Time
	}
	doc.Events = append(doc.Events, eventsOf(r.history(pod), pod)...)
	p, err := r.next(ctx, d, pod)
	if p != nil {
		doc.Next = &nextDocument{Summary: view.NextApply(p), Drift: p.Drift, Notes: p.Notes}
	}
	return doc, err
}

// records returns the recorded probes of a pod by container ID. It returns nil if the checkpoint cannot be read.
func (r *describer) records(pod *v1.Pod) map[string]map[model.ProbeType]model.ProbeRecord {
	j, err := r.layout.Pod(pod.UID).Checkpoint().Read()
	if err != nil {
		return nil // The status of the pod shows the problem.
	}
	return j.Probes
}

// probeStates returns the probes of a pod's containers with their last results.
func probeStates(pod *v1.Pod, records map[string]map[model.ProbeType]model.ProbeRecord) []probeState {
	docs := []probeState{}
	for _, ref := range podspec.Containers(pod) {
		_, id, _ := strings.Cut(view.StatusOf(pod, ref.Name).ContainerID, "://")
		for _, t := range model.ProbeTypes() {
			p := model.ProbeOf(ref.Container, t)
			if p == nil {
				continue
			}
			doc := probeState{Container: ref.Name, Type: t, Probe: probeText(p)}
			if record, known := records[id][t]; known {
				doc.Result, doc.Run = record.Result, record.Run
				if !record.CountedAt.IsZero() {
					doc.CountedAt = &record.CountedAt
				}
			}
			docs = append(docs, doc)
		}
	}
	return docs
}
