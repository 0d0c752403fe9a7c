package service

import (
	"encoding/json"
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
)

// Known holds the names and variables of Services that containers get when they start.
type Known struct {
	Names []Name `json:"names"`
	// Links are variables by namespace and name
	// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
	Links map[string]map[string]string `json:"links,omitempty"`
	// Always are variables for every pod, also for one that requests no links. Only a cluster has them.
	Always map[string]string `json:"always,omitempty"`
}

// masterService is the Service in the namespace default that every pod of a cluster knows (kubelet: masterServices).
const masterService = "kubernetes"

// InCluster returns the variables of the Services of a cluster (kubelet: getServiceEnvVarMap). They have no names here:
// those are the job of the cluster's DNS.
func InCluster(services []*v1.Service) Known {
	k := NewKnown(services, nil)
	for _, s := range services {
		if s.Namespace == metav1.NamespaceDefault && s.Name == masterService {
			k.Always = NewKnown([]*v1.Service{s}, nil).Links[s.Namespace]
		}
	}
	return k
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
// pod requests none (enableServiceLinks), and those that every pod gets. The caller must not change the result.
func (k Known) Variables(pod *v1.Pod) map[string]string {
	if links := pod.Spec.EnableServiceLinks; links != nil && !*links {
		return k.Always
	}
	linked := k.Links[pod.Namespace]
	if len(k.Always) == 0 || linked[masterHost] != "" {
		return linked
	}
	all := maps.Clone(k.Always)
	maps.Copy(all, linked)
	return all
}

// masterHost is a variable of masterService. A Service of this name in the namespace of a pod replaces it.
const masterHost = "KUBERNETES_SERVICE_HOST"

// Encode returns the contents of the file.
func (k Known) Encode() ([]byte, error) { return json.Marshal(k) }

// DecodeKnown parses the contents of the file. A damaged file counts as empty: it is rewritten at the next change.
func DecodeKnown(text []byte) (k Known) {
	if json.Unmarshal(text, &k) != nil {
		return Known{}
	}
	return k
}
