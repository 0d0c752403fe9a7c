package load

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/quote"
)

// Reasons why podctl skips kinds: it runs pods on one machine, without an API server.
const (
	noServer     = "podctl has no API server"
	noTraffic    = "podctl does not filter or route traffic"
	ownEndpoints = "the endpoints of a Service are its pods"
	ownStorage   = "podctl has no storage drivers: it keeps the data of a claim in a directory of its own"
	oneMachine   = "podctl runs pods on one machine"
	noOperator   = "it is for an operator, which only a cluster has"
	ofNamespace  = "namespaces need not be created here, and have no settings"
	noUse        = "podctl has no use for this kind"
)

// whySkipped returns the reason why podctl always skips objects of a kind, or an empty string.
func whySkipped(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return map[string]string{
			"ServiceAccount":   noServer,
			"Namespace":        ofNamespace,
			"ResourceQuota":    ofNamespace,
			"LimitRange":       ofNamespace,
			"PersistentVolume": ownStorage,
			"Endpoints":        ownEndpoints,
		}[kind]
	}
	monitoring := []string{"ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig"}
	if group == "monitoring.coreos.com" && slices.Contains(monitoring, kind) {
		return noOperator
	}
	return map[string]string{
		"rbac.authorization.k8s.io":    noServer,
		"apiextensions.k8s.io":         noServer,
		"apiregistration.k8s.io":       noServer,
		"admissionregistration.k8s.io": noServer,
		"networking.k8s.io":            noTraffic,
		"gateway.networking.k8s.io":    noTraffic,
		"policy":                       oneMachine,
		"discovery.k8s.io":             ownEndpoints,
		"storage.k8s.io":               ownStorage,
		"scheduling.k8s.io":            oneMachine,
		"autoscaling":                  "podctl does not scale automatically; use `podctl scale`",
	}[group]
}

// skippable reports whether --skip-unknown may skip objects of a kind. It must not skip an unsupported version of a
// kind that podctl runs, nor an unknown kind in a group of Kubernetes, because that is probably a typing error.
func skippable(file string, meta typeMeta) bool {
	group, _, grouped := strings.Cut(meta.APIVersion, "/")
	switch {
	case kustomizeHint(file, meta) != "":
		return false
	case !grouped:
		return slices.Contains([]string{"Node", "Event", "Binding", "ComponentStatus", "PodTemplate"}, meta.Kind)
	case group == "apps":
		return meta.Kind == "ControllerRevision"
	case group == "batch":
		return false
	}
	return versionOf(meta.Kind) == "" || !isKubernetes(meta.APIVersion)
}

// versionOf returns the apiVersion that podctl reads for a kind, or an empty string for a kind that it does not run.
func versionOf(kind string) string {
	if kind == kindReplicationController {
		return "v1"
	}
	return podspec.KindNamed(kind).APIVersion
}

// hint returns advice for a refused object.
func (a *reading) hint(file string, meta typeMeta) string {
	version := versionOf(meta.Kind)
	switch {
	case !a.loader.Workloads && podspec.KindNamed(meta.Kind).Workload:
		return "; this command takes pods: name an applied workload as " + strings.ToLower(meta.Kind) + "/NAME"
	case !a.loader.Workloads:
		return kustomizeHint(file, meta)
	case version != "" && version != meta.APIVersion && isKubernetes(meta.APIVersion):
		return fmt.Sprintf("; the apiVersion of %s is %s", meta.Kind, version)
	case skippable(file, meta):
		return "; --skip-unknown of apply, plan, diff, validate, delete and agent skips it"
	}
	return kustomizeHint(file, meta)
}

// isKubernetes reports whether an API belongs or belonged to Kubernetes, and is not a custom one.
func isKubernetes(apiVersion string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	return !grouped || !strings.Contains(group, ".")
}

// kustomizeHint returns advice for a kustomization that is used as a manifest.
func kustomizeHint(file string, meta typeMeta) string {
	name := filepath.Base(file)
	stem := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".yaml"), ".yml")
	if strings.HasPrefix(meta.APIVersion, "kustomize.config.k8s.io/") || stem == "kustomization" {
		dir := "DIR"
		if filepath.IsAbs(file) {
			dir = filepath.Dir(file)
		}
		return fmt.Sprintf("; podctl does not build kustomizations: write kustomize build %s | podctl apply -f -", dir)
	}
	return ""
}

// skip skips an object that podctl does not use. It returns false for a kind that is refused.
func (a *reading) skip(r *report, meta typeMeta) bool {
	if !a.loader.Workloads {
		return false
	}
	why := whySkipped(meta.APIVersion, meta.Kind)
	if why == "" && a.loader.SkipUnknown && skippable(r.File, meta) {
		why = noUse
	}
	if why == "" {
		return false
	}
	a.addSkipped(r, meta.APIVersion, why)
	return true
}

// addSkipped lists a skipped object once, even if the manifests have it several times.
func (a *reading) addSkipped(r *report, apiVersion, why string) {
	s := document.Skipped{
		APIVersion: apiVersion,
		Kind:       r.Kind,
		Namespace:  r.Scalar("metadata", "namespace"),
		Name:       cmp.Or(r.Scalar("metadata", "name"), r.Scalar("metadata", "generateName")),
		File:       r.File,
		Reason:     why,
	}
	s.Line, s.Column = r.Position("kind")
	if !slices.ContainsFunc(a.skipped, s.IsSame) {
		a.skipped = append(a.skipped, s)
	}
}

// countedValues returns how many values of a document count towards the limit of all documents. Definitions of custom
// resources are long and are skipped, so they do not count.
func (a *reading) countedValues(d *document.Document) int64 {
	meta := typeMeta{APIVersion: d.Scalar("apiVersion"), Kind: d.Scalar("kind")}
	isUnknown := a.loader.SkipUnknown && skippable(d.File, meta)
	if a.loader.Workloads && (isUnknown || whySkipped(meta.APIVersion, meta.Kind) != "") {
		return 0
	}
	return d.Values
}

// hookAnnotation defines when helm applies an object: with an installation, or at another time.
const hookAnnotation = "helm.sh/hook"

// isLaterHook reports whether helm applies an object at another time than an installation, such as a test or a hook
// before a deletion, and skips it. Hooks that run before or after an installation are applied with everything else.
func (a *reading) isLaterHook(r *report, apiVersion string) bool {
	hook := r.Scalar("metadata", "annotations", hookAnnotation)
	if hook == "" || !a.loader.Workloads {
		return false
	}
	at := "metadata.annotations[" + hookAnnotation + "]"
	applied := []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "crd-install"}
	for word := range strings.SplitSeq(hook, ",") {
		if slices.Contains(applied, strings.TrimSpace(word)) {
			a.notes = append(a.notes, r.Note("", at, "A hook of helm is applied with everything else, in no order."))
			return false
		}
	}
	a.addSkipped(r, apiVersion, fmt.Sprintf(
		"it is a hook, %s, which helm applies at another time than the chart", quote.Value(hook)))
	return true
}
