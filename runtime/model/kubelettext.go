package model

import (
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// KubeletError is an error with a different text in a kubelet. A pod's status and events use the kubelet's text,
// because users and tools search for it. podctl's own text names the place and the fix.
type KubeletError struct {
	Err  error
	Text string
}

// KubeletErrorf returns an error with the same text in podctl and a kubelet. A caller may wrap it to add the place,
// which a kubelet leaves out.
func KubeletErrorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &KubeletError{Err: err, Text: err.Error()}
}

// Error returns podctl's own text.
func (e *KubeletError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *KubeletError) Unwrap() error { return e.Err }

// KubeletText returns the kubelet's text.
func (e *KubeletError) KubeletText() string { return e.Text }

// worded is an error with a kubelet's text.
type worded interface {
	error
	KubeletText() string
}

// KubeletText returns the kubelet's text of an error; empty if it has none of its own.
func KubeletText(err error) string {
	if w, ok := errors.AsType[worded](err); ok {
		return w.KubeletText()
	}
	return ""
}

// resizeSummary is the content of the kubelet's events of resizes (kubelet: podResourceSummary).
type resizeSummary struct {
	InitContainers []resizedContainer `json:"initContainers,omitempty"`
	Containers     []resizedContainer `json:"containers,omitempty"`
	Generation     int64              `json:"generation"`
	Error          string             `json:"error,omitempty"`
}

type resizedContainer struct {
	Name      string                  `json:"name"`
	Resources v1.ResourceRequirements `json:"resources,omitempty"` //nolint:modernize // a kubelet prints it always
}

// ResizeText returns the kubelet's text of an event of a resize (kubelet: podResizeMessage).
func ResizeText(what string, spec *v1.PodSpec, generation int64, failure string) string {
	summary := resizeSummary{Generation: generation, Error: failure}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		summary.InitContainers = append(summary.InitContainers, resizedContainer{c.Name, c.Resources})
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		summary.Containers = append(summary.Containers, resizedContainer{c.Name, c.Resources})
	}
	text, err := json.Marshal(summary)
	if err != nil {
		return what
	}
	return what + ": " + string(text)
}
