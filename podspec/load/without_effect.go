package load

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Why kinds have no effect on one machine without an API server.
const (
	nobodyAsks   = "There is no API server here whose users and programs it is for."
	noTraffic    = "podctl filters and routes no traffic."
	ownEndpoints = "The endpoints of a Service are its pods."
	ownStorage   = "A claim is a directory of podctl's own."
	oneMachine   = "Here is one machine, of which nothing is drained or filled up."
	noOperator   = "It is for an operator, which only a cluster has."
	ofNamespace  = "Namespaces are names here: they need not be made, and have no settings."
)

// withoutEffect says why an object of a kind has no effect; empty for a kind that is refused. What charts and kustomizations
// have beside their pods is told, and holds up nothing.
func withoutEffect(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return map[string]string{
			"ServiceAccount": nobodyAsks, "Namespace": ofNamespace, "ResourceQuota": ofNamespace, "LimitRange": ofNamespace, "PersistentVolume": ownStorage,
			"Endpoints": ownEndpoints,
		}[kind]
	}
	if group == "monitoring.coreos.com" && slices.Contains([]string{"ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig"}, kind) {
		return noOperator
	}
	return map[string]string{
		"rbac.authorization.k8s.io": nobodyAsks, "apiextensions.k8s.io": nobodyAsks, "apiregistration.k8s.io": nobodyAsks,
		"admissionregistration.k8s.io": nobodyAsks, "networking.k8s.io": noTraffic, "gateway.networking.k8s.io": noTraffic,
		"policy": oneMachine, "discovery.k8s.io": ownEndpoints, "storage.k8s.io": ownStorage, "scheduling.k8s.io": oneMachine,
		"autoscaling": "podctl scales nothing by itself; `podctl scale` changes how many pods there are.",
	}[group]
}

// hint says what to do with an object that is refused.
func (a *assembly) hint(file string, meta typeMeta) string {
	version := map[string]string{
		"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
		"Pod": "v1", "Service": "v1", "ConfigMap": "v1", "Secret": "v1", "PersistentVolumeClaim": "v1",
		"Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1",
	}[meta.Kind]
	if a.workloads && version != "" && isKubernetes(meta.APIVersion) {
		return fmt.Sprintf("; the apiVersion of %s is %s", meta.Kind, version)
	}
	return kustomizeHint(file, meta)
}

// isKubernetes reports whether an API is one that Kubernetes has or had, and not one of somebody else's definitions.
func isKubernetes(apiVersion string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	return !grouped || !strings.Contains(group, ".")
}

// kustomizeHint says what to do with a kustomization that is given as a manifest.
func kustomizeHint(file string, meta typeMeta) string {
	name := filepath.Base(file)
	if strings.HasPrefix(meta.APIVersion, "kustomize.config.k8s.io/") || strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".yaml"), ".yml") == "kustomization" {
		dir := "DIR"
		if filepath.IsAbs(file) {
			dir = filepath.Dir(file)
		}
		return fmt.Sprintf("; podctl does not build kustomizations: write kustomize build %s | podctl apply -f -", dir)
	}
	return ""
}

// isOfCluster reports whether objects of a kind that has no effect are in no namespace.
func isOfCluster(kind string) bool {
	return strings.HasPrefix(kind, "Cluster") || strings.HasPrefix(kind, "Validating") || strings.HasPrefix(kind, "Mutating") || slices.Contains([]string{
		"Namespace", "PersistentVolume", "CustomResourceDefinition", "APIService", "IngressClass", "GatewayClass", "PriorityClass", "StorageClass",
		"CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass", "IPAddress", "ServiceCIDR",
	}, kind)
}

// skip notes an object that has no effect; false for a kind that is refused.
func (a *assembly) skip(r *report, meta typeMeta) bool {
	why := withoutEffect(meta.APIVersion, meta.Kind)
	if why == "" || !a.workloads {
		return false
	}
	name := r.Scalar("metadata", "name")
	if !isOfCluster(meta.Kind) {
		name = cmp.Or(r.Scalar("metadata", "namespace"), a.namespace) + "/" + name
	}
	a.notes = append(a.notes, r.Note("", "kind", fmt.Sprintf("%s %s has no effect: %s", meta.Kind, name, why)))
	return true
}

// hookAnnotation says when helm would apply an object: beside an installation, or at another time.
const hookAnnotation = "helm.sh/hook"

// isLaterHook reports whether helm would apply an object at another time than with the others, as a test or before a deletion,
// and notes it. What runs before or after an installation is applied with everything else.
func (a *assembly) isLaterHook(r *report) bool {
	hook := r.Scalar("metadata", "annotations", hookAnnotation)
	if hook == "" || !a.workloads {
		return false
	}
	at := "metadata.annotations[" + hookAnnotation + "]"
	for word := range strings.SplitSeq(hook, ",") {
		if slices.Contains([]string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "crd-install"}, strings.TrimSpace(word)) {
			a.notes = append(a.notes, r.Note("", at, "A hook of helm is applied with everything else, in no order."))
			return false
		}
	}
	name := r.Scalar("metadata", "namespace")
	if name == "" {
		name = a.namespace
	}
	a.notes = append(a.notes, r.Note("", at, fmt.Sprintf("%s %s/%s is left out: helm applies it at another time than the rest of its chart.", r.Kind, name, r.Scalar("metadata", "name"))))
	return true
}
