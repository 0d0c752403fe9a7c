package selection

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/workload"
)

// addWorkloads takes the stored workloads of the namespace in the place of their pods.
func (f *finder) addWorkloads(found *Found) error {
	records, err := f.sess.Workloads().List(func(key state.ObjectKey) bool { return f.Reaches(f.sess, key.Namespace) })
	if err != nil {
		return err
	}
	for _, r := range records {
		found.Workloads = append(found.Workloads, r.Workload)
		found.Pods = slices.DeleteFunc(found.Pods, func(d *podspec.Desired) bool { return controller.Owns(r.Key(), d.Pod) })
	}
	f.sess.Loaded(templatesOf(found.Workloads))
	return nil
}

// namedWorkloads takes the stored workloads that are named by KIND/NAME, and returns the other names.
func (f *finder) namedWorkloads(found *Found, names []string) (others []string, err error) {
	targets, err := ParseTargets(names, f.sess.Flags.Namespace)
	if err != nil || len(targets.Workloads) == 0 {
		return names, err
	}
	for _, key := range targets.Workloads {
		r, err := f.sess.Workloads().Get(key)
		if err != nil {
			return nil, err
		}
		found.Workloads = append(found.Workloads, r.Workload)
	}
	f.sess.Loaded(templatesOf(found.Workloads))
	return targets.Pods, nil
}

// podsOfKinds are the pods of the workloads and Services that are named by KIND/NAME, and the other names.
func (f *finder) podsOfKinds(applied []*podspec.Desired, names []string) (pods []*podspec.Desired, others []string, err error) {
	for _, name := range names {
		key, ok := manyNamed(name, f.sess.Flags.Namespace)
		if !ok {
			others = append(others, name)
			continue
		}
		has, err := f.members(key)
		if err != nil {
			return nil, nil, err
		}
		before := len(pods)
		for _, d := range applied {
			if has(d.Pod) && !UIDs(pods)[d.Pod.UID] {
				pods = append(pods, d)
			}
		}
		if len(pods) == before {
			return nil, nil, &NoPodsError{Key: key, Reason: f.whyNoPods(key)}
		}
	}
	return pods, others, nil
}

// NoPodsError says that a workload or a Service has no pods.
type NoPodsError struct {
	Key state.ObjectKey
	// Reason is why; empty if podctl does not know.
	Reason string
}

// Error says why, or how to look for others.
func (e *NoPodsError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("%s has no pods: %s", e.Key, e.Reason)
	}
	return fmt.Sprintf("%s has no pods here (`podctl get %s -A` lists those of its kind)", e.Key, e.Key.Word())
}

// whyNoPods is the reason why a stored workload has no pods; empty if there is none to see.
func (f *finder) whyNoPods(key state.ObjectKey) string {
	if key.Kind == podspec.KindService {
		return ""
	}
	r, err := f.sess.Workloads().Get(key)
	switch {
	case err != nil:
		return ""
	case r.Workload.CronJob != nil:
		return "its Jobs have them (`podctl get jobs` lists these)"
	case r.Workload.Job == nil:
		return ""
	case r.Job != nil && workload.JobEnd(r.Job) != nil:
		return fmt.Sprintf("it has ended (%s), and its pods were deleted since, with their logs", workload.JobEnd(r.Job).Type)
	case ptr.Deref(r.Workload.Job.Spec.Suspend, false):
		return "it is suspended"
	}
	return "none has been made yet"
}

// members tells the pods of a workload or a Service from others.
func (f *finder) members(key state.ObjectKey) (func(*v1.Pod) bool, error) {
	if key.Kind != podspec.KindService {
		return func(pod *v1.Pod) bool { return controller.Owns(key, pod) }, nil
	}
	o, err := f.sess.Objects().Get(key)
	if err != nil {
		return nil, err
	}
	return func(pod *v1.Pod) bool { return service.Selects(o.Service, pod) }, nil
}

// manyNamed is the workload or the Service that a name means, if it is KIND/NAME of one: they stand for pods.
func manyNamed(name, namespace string) (key state.ObjectKey, ok bool) {
	targets, err := ParseTargets([]string{name}, namespace)
	switch {
	case err == nil && len(targets.Workloads) == 1:
		return targets.Workloads[0], true
	case err == nil && len(targets.Objects) == 1:
		return targets.Objects[0], targets.Objects[0].Kind == podspec.KindService
	}
	return state.ObjectKey{}, false
}

// ServiceNamed is the Service that a name means, if it is KIND/NAME of one.
func ServiceNamed(name, namespace string) (key state.ObjectKey, ok bool) {
	key, ok = manyNamed(name, namespace)
	return key, ok && key.Kind == podspec.KindService
}

// WorkloadNamed is the workload that a name means, if it is KIND/NAME of one.
func WorkloadNamed(name, namespace string) (key state.ObjectKey, ok bool) {
	key, ok = manyNamed(name, namespace)
	return key, ok && key.Kind != podspec.KindService
}

// templatesOf are the pods of the templates of workloads.
func templatesOf(workloads []*podspec.Workload) []*podspec.Desired {
	pods := make([]*podspec.Desired, 0, len(workloads))
	for _, w := range workloads {
		pods = append(pods, w.Template)
	}
	return pods
}

// Reaches reports whether the selection is for a namespace: that of the command, or all.
func (s *Selection) Reaches(sess *session.Session, namespace string) bool {
	return s.AllNamespaces || namespace == sess.Flags.Namespace
}

// AddStored names the stored workloads and objects of the kinds of targets, as far as the selection reaches and its labels match. The
// error says which ones could not be read.
func (s *Selection) AddStored(sess *session.Session, targets *Targets) error {
	selector, err := labels.Parse(s.Labels)
	if err != nil {
		return exit.Usagef("--selector: %v", err)
	}
	match := func(key state.ObjectKey) bool {
		return slices.Contains(targets.Kinds, key.Kind) && s.Reaches(sess, key.Namespace)
	}
	stored, err := sess.Objects().List(match)
	for _, one := range stored {
		if selector.Matches(labels.Set(one.Meta().Labels)) {
			targets.Objects = append(targets.Objects, objects.KeyOf(one))
		}
	}
	records, recordsErr := sess.Workloads().List(match)
	for _, r := range records {
		if selector.Matches(labels.Set(r.Workload.Meta().Labels)) {
			targets.Workloads = append(targets.Workloads, r.Key())
		}
	}
	return errors.Join(err, recordsErr)
}
