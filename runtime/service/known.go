package service

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
)

// Known holds the names and variables of Services that containers get when they start.
type Known struct {
	Names []Name `json:"names"`
	// Links are variables by namespace and name
	// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
	Links map[string]map[string]string `json:"links,omitempty"`
}

// NewKnown returns the values for Services with these names.
func NewKnown(services []*v1.Service, names []Name) Known {
	k := Known{Names: names}
	for _, s := range services {
		if s.Spec.Type == v1.ServiceTypeExternalName || len(s.Spec.Ports) == 0 {
			continue
		}
		for _, v := range envvars.FromServices([]*v1.Service{s}) {
			if k.Links == nil {
				k.Links = map[string]map[string]string{}
			}
			if k.Links[s.Namespace] == nil {
				k.Links[s.Namespace] = map[string]string{}
			}
			k.Links[s.Namespace][v.Name] = v.Value
		}
	}
	return k
}

// Variables returns the variables for the containers of a pod. They describe the Services of its namespace, unless the
// pod requests none (enableServiceLinks).
func (k Known) Variables(pod *v1.Pod) map[string]string {
	if links := pod.Spec.EnableServiceLinks; links != nil && !*links {
		return nil
	}
	return k.Links[pod.Namespace]
}

// Encode returns the contents of the file.
func (k Known) Encode() ([]byte, error) { return json.Marshal(k) }

// DecodeKnown parses the contents of the file. A damaged file counts as empty: it is rewritten at the next change.
func DecodeKnown(text []byte) (k Known) {
	if json.Unmarshal(text, &k) != nil {
		return Known{}
	}
	return k
}
