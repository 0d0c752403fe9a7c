package selection

import (
	"errors"
	"fmt"
	"slices"

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

// addWorkloads adds the stored workloads of the namespace, and removes their pods.
func (f *finder) addWorkloads(found *Found) error {
	records, err := f.sess.Workloads().List(func(key state.ObjectKey) bool { return f.Reaches(f.sess, key.Namespace) })
	if err != nil {
		return err
	}
	for _, r := range records {
		found.Workloads = append(found.Workloads, r.Workload)
		found.Pods = slices.DeleteFunc(found.Pods, func(d *podspec.Desired) bool {
			return controller.OwnsPod(r.Key(), d)
		})
	}
	f.sess.Loaded(templatesOf(found.Workloads))
	return nil
}

// namedWorkloads adds the stored workloads named by KIND/NAME, and returns the other names.
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

// podsOfKinds returns the pods of the workloads and Services named by KIND/NAME, and the other names.
func (f *finder) podsOfKinds(
	applied []*podspec.Desired, names []string,
) (pods []*podspec.Desired, others []string, err error) {
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
			if has(d) && !UIDs(pods)[d.Pod.UID] {
				pods = append(pods, d)
			}
		}
		if len(pods) == before {
			return nil, nil, &NoPodsError{Key: key, Reason: f.whyNoPods(key)}
		}
	}
	return pods, others, nil
}

// NoPodsError reports that a workload or a Service has no pods.
type NoPodsError struct {
	Key state.ObjectKey
	// Reason is empty if podctl does not know it.
	Reason string
}

// Error returns the message, with the reason or a command that lists other objects.
func (e *NoPodsError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("%s has no pods: %s", e.Key, e.Reason)
	}
	return fmt.Sprintf("%s has no pods on this node (`podctl get %s -A` lists all objects of this kind)",
		e.Key, e.Key.Word())
}

// whyNoPods returns the reason why a stored workload has no pods; empty if it is unknown.
func (f *finder) whyNoPods(key state.ObjectKey) string {
	if key.Kind == podspec.KindService {
		return ""
	}
	r, err := f.sess.Workloads().Get(key)
	switch {
	case err != nil:
		return ""
	case r.Workload.CronJob != nil:
		return "its pods belong to its Jobs (`podctl get jobs` lists them)"
	case r.Workload.Job == nil:
		return ""
	case r.Job != nil && workload.JobEnd(r.Job) != nil:
		return fmt.Sprintf("it has finished (%s), and its pods and their logs were deleted",
			workload.JobEnd(r.Job).Type)
	case ptr.Deref(r.Workload.Job.Spec.Suspend, false):
		return "it is suspended"
	}
	return "none has been created yet"
}

// members returns a function that reports whether a pod belongs to a workload or a Service.
func (f *finder) members(key state.ObjectKey) (func(*podspec.Desired) bool, error) {
	if key.Kind != podspec.KindService {
		return func(d *podspec.Desired) bool { return controller.OwnsPod(key, d) }, nil
	}
	o, err := f.sess.Objects().Get(key)
	if err != nil {
		return nil, err
	}
	return func(d *podspec.Desired) bool { return service.Selects(o.Service, d.Pod) }, nil
}

// manyNamed returns the workload or Service of a name in the form KIND/NAME.
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

// ServiceNamed returns the Service of a name in the form KIND/NAME.
func ServiceNamed(name, namespace string) (key state.ObjectKey, ok bool) {
	key, ok = manyNamed(name, namespace)
	return key, ok && key.Kind == podspec.KindService
}

// WorkloadNamed returns the workload of a name in the form KIND/NAME.
func WorkloadNamed(name, namespace string) (key state.ObjectKey, ok bool) {
	key, ok = manyNamed(name, namespace)
	return key, ok && key.Kind != podspec.KindService
}

// templatesOf returns the pods of workloads' templates.
func templatesOf(workloads []*podspec.Workload) []*podspec.Desired {
	pods := make([]*podspec.Desired, 0, len(workloads))
	for _, w := range workloads {
		pods = append(pods, w.Template)
	}
	return pods
}

// Reaches reports whether a namespace is in the selection: that of the command, or all.
func (s *Selection) Reaches(sess *session.Session, namespace string) bool {
	return s.AllNamespaces || namespace == sess.Flags.Namespace
}

// AddStored adds the stored workloads and objects of the kinds in targets that match the namespace and the labels. The
// error lists unreadable ones.
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
