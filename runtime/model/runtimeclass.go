package model

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// RuntimeClasses maps the names of RuntimeClasses to their handlers of the runtime.
type RuntimeClasses map[string]string

// Encode returns the contents of the file with the RuntimeClasses.
func (c RuntimeClasses) Encode() ([]byte, error) { return json.Marshal(c) }

// DecodeRuntimeClasses parses the contents of the file. It returns nil for no contents, and for a damaged file, which
// is rewritten after the next list.
func DecodeRuntimeClasses(text []byte) (c RuntimeClasses) {
	if json.Unmarshal(text, &c) != nil {
		return nil
	}
	return c
}

// Of returns the classes of a pod: the one that it names, if that exists. Nil stays nil.
func (c RuntimeClasses) Of(pod *v1.Pod) RuntimeClasses {
	if c == nil {
		return nil
	}
	own, name := RuntimeClasses{}, ptr.Deref(pod.Spec.RuntimeClassName, "")
	if handler, found := c[name]; found {
		own[name] = handler
	}
	return own
}

// Handler returns the handler for a pod of the API server; empty for the default one (kubelet: LookupRuntimeHandler).
// The error has the kubelet's text.
func (c RuntimeClasses) Handler(pod *v1.Pod) (string, error) {
	name := ptr.Deref(pod.Spec.RuntimeClassName, "")
	if name == "" {
		return "", nil
	}
	handler, found := c[name]
	switch {
	case found:
		return handler, nil
	case c == nil:
		const unread = "failed to lookup RuntimeClass %s: RuntimeClasses have not yet been read at least once"
		return "", &KubeletError{
			Err:  fmt.Errorf("spec.runtimeClassName: RuntimeClass %q has not been read from the API server", name),
			Text: fmt.Sprintf(unread, name),
		}
	}
	return "", &KubeletError{
		Err:  fmt.Errorf("spec.runtimeClassName: RuntimeClass %q does not exist in the API server", name),
		Text: fmt.Sprintf("runtimeclass.node.k8s.io %q not found", name),
	}
}
