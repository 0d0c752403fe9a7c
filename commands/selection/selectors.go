package selection

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
)

// RegisterSelectors defines -l, --field-selector and -A. The usage of -A is given, because its conditions differ
// between commands.
func (s *Selection) RegisterSelectors(f *pflag.FlagSet, allNamespaces string) {
	f.StringVarP(&s.Labels, "selector", "l", "", "Only pods with these labels, for example app=web,tier!=db")
	f.StringVar(&s.Fields, "field-selector", "",
		"Only pods with these fields, for example status.phase=Failed,spec.restartPolicy!=Never")
	f.BoolVarP(&s.AllNamespaces, "all-namespaces", "A", false, allNamespaces)
}

// IsEmpty reports whether a command line selects no pod in any way.
func (s *Selection) IsEmpty(args []string) bool {
	return len(args) == 0 && !s.Manifests() && !s.All && !s.Selects()
}

// Manifests reports whether -f names manifests.
func (s *Selection) Manifests() bool { return len(s.Files) > 0 }

// Selects reports whether there is a selector.
func (s *Selection) Selects() bool { return s.Labels != "" || s.Fields != "" }

// checkFlags refuses contradictory flags, as kubectl does.
func (s *Selection) checkFlags(manifests, names []string) error {
	switch {
	case s.Selects() && len(names) > 0:
		return exit.Usagef("--selector and --field-selector cannot be used with names")
	case s.Fields != "" && len(manifests) > 0:
		return exit.Usagef("--field-selector cannot be used with manifests")
	case s.All && len(names)+len(manifests)+len(s.ConfigMaps) > 0:
		return exit.Usagef("--all cannot be used with names, manifests or --configmap")
	case len(s.ConfigMaps) > 0 && (len(manifests) == 0 || len(names) > 0):
		return exit.Usagef("--configmap needs the manifests of the pods, not their names")
	}
	return s.checkSets(len(manifests) > 0, names)
}

// selectors are the parsed selectors of a selection.
type selectors struct {
	labels labels.Selector
	fields []fields.Requirement
}

func (s *Selection) selectors() (*selectors, error) {
	byLabel, err := labels.Parse(s.Labels)
	if err != nil {
		return nil, exit.Usagef("--selector: %v", err)
	}
	byField, err := fields.ParseSelector(s.Fields)
	if err != nil {
		return nil, exit.Usagef("--field-selector: %v", err)
	}
	parsed := &selectors{labels: byLabel, fields: byField.Requirements()}
	known := podFields(&v1.Pod{})
	for _, r := range parsed.fields {
		if !known.Has(r.Field) {
			return nil, exit.Usagef("--field-selector: pods cannot be selected by the field %q, only by %s",
				r.Field, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return parsed, nil
}

// statusField is the prefix of fields that need an observation of the pod.
const statusField = "status."

// needStatus reports whether a selector needs the status of pods.
func (s *selectors) needStatus() bool {
	return slices.ContainsFunc(s.fields, func(r fields.Requirement) bool {
		return strings.HasPrefix(r.Field, statusField)
	})
}

// match reports whether a pod has the labels and the fields, without those of its status.
func (s *selectors) match(pod *v1.Pod) bool {
	inManifest := func(field string) bool { return !strings.HasPrefix(field, statusField) }
	return s.labels.Matches(labels.Set(pod.Labels)) && s.has(pod, inManifest)
}

// matchStatus reports whether the status of a pod has the fields.
func (s *selectors) matchStatus(pod *v1.Pod) bool {
	return s.has(pod, func(field string) bool { return strings.HasPrefix(field, statusField) })
}

func (s *selectors) has(pod *v1.Pod, counts func(field string) bool) bool {
	values := podFields(pod)
	return !slices.ContainsFunc(s.fields, func(r fields.Requirement) bool {
		return counts(r.Field) && (r.Operator == selection.NotEquals) == (values.Get(r.Field) == r.Value)
	})
}

// podFields returns the fields by which pods can be selected (Kubernetes: pod.ToSelectableFields).
func podFields(pod *v1.Pod) fields.Set {
	return fields.Set{
		"metadata.name":            pod.Name,
		"metadata.namespace":       pod.Namespace,
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}

// matching returns the pods that match.
func (s *selectors) matching(pods []*podspec.Desired) []*podspec.Desired {
	return slices.DeleteFunc(pods, func(d *podspec.Desired) bool { return !s.match(d.Pod) })
}

// narrow removes the objects of manifests that the selectors do not match.
func (s *Selection) narrow(found *Found) error {
	parsed, err := s.selectors()
	if err != nil {
		return err
	}
	leftOut := func(meta *metav1.ObjectMeta) bool { return !parsed.labels.Matches(labels.Set(meta.Labels)) }
	found.Pods = parsed.matching(found.Pods)
	found.Workloads = slices.DeleteFunc(found.Workloads, func(w *podspec.Workload) bool { return leftOut(w.Meta()) })
	var pods []*podspec.Desired
	if s.For == Apply {
		pods = slices.Concat(found.Pods, templatesOf(found.Workloads))
	}
	found.Objects = slices.DeleteFunc(found.Objects, func(o *podspec.Object) bool {
		return leftOut(o.Meta()) && len(objects.Users(objects.KeyOf(o), pods)) == 0
	})
	return nil
}

// ByStatus returns the observed pods whose status matches the field selector.
func (s *Selection) ByStatus(pods []*v1.Pod) ([]*v1.Pod, error) {
	parsed, err := s.selectors()
	if err != nil || !parsed.needStatus() {
		return pods, err
	}
	return slices.DeleteFunc(pods, func(pod *v1.Pod) bool { return !parsed.matchStatus(pod) }), nil
}

// narrowByStatus observes the pods if the field selector needs their status, and removes those that do not match.
func (f *finder) narrowByStatus(ctx context.Context, found *Found) error {
	parsed, err := f.selectors()
	if err != nil || f.For == List || !parsed.needStatus() || len(found.Pods) == 0 {
		return err
	}
	observer, err := f.observer()
	if err != nil {
		return err
	}
	pods, unknown := observer.List(ctx, found.Pods)
	if pods == nil {
		return unknown
	}
	if f.For >= Reach {
		found.Unreadable = errors.Join(found.Unreadable, unknown)
	} else if unknown != nil {
		f.sess.IO.NoteOnce("note: %s", f.sess.ErrorText(unknown))
	}
	meant := map[types.UID]bool{}
	for _, pod := range pods {
		meant[pod.UID] = parsed.matchStatus(pod)
	}
	found.Pods = slices.DeleteFunc(found.Pods, func(d *podspec.Desired) bool { return !meant[d.Pod.UID] })
	return nil
}

// observer returns the snapshot or the runtime.
func (f *finder) observer() (Observer, error) {
	if f.recording != nil {
		return f.recording, nil
	}
	return f.sess.Engine()
}
