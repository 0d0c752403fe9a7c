package selection

import (
	"fmt"
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/state"
)

// addWorkloads takes the stored workloads of the namespace in the place of their pods.
func (f *finder) addWorkloads(found *Found) error {
	records, err := f.sess.Workloads().List(func(key state.ObjectKey) bool { return f.AllNamespaces || key.Namespace == f.sess.Flags.Namespace })
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

// podsOfWorkloads are the pods of the workloads that are named by KIND/NAME, and the other names.
func podsOfWorkloads(namespace string, applied []*podspec.Desired, names []string) (pods []*podspec.Desired, others []string, err error) {
	for _, name := range names {
		key, ok := WorkloadNamed(name, namespace)
		if !ok {
			others = append(others, name)
			continue
		}
		before := len(pods)
		for _, d := range applied {
			if controller.Owns(key, d.Pod) && !UIDs(pods)[d.Pod.UID] {
				pods = append(pods, d)
			}
		}
		if len(pods) == before {
			return nil, nil, fmt.Errorf("%s has no pods here (`podctl get %s -A` lists workloads of its kind)", key, key.Word())
		}
	}
	return pods, others, nil
}

// WorkloadNamed is the workload that a name means, if it is KIND/NAME of one.
func WorkloadNamed(name, namespace string) (key state.ObjectKey, ok bool) {
	targets, err := ParseTargets([]string{name}, namespace)
	if err != nil || len(targets.Workloads) != 1 {
		return state.ObjectKey{}, false
	}
	return targets.Workloads[0], true
}

// templatesOf are the pods of the templates of workloads.
func templatesOf(workloads []*podspec.Workload) []*podspec.Desired {
	pods := make([]*podspec.Desired, 0, len(workloads))
	for _, w := range workloads {
		pods = append(pods, w.Template)
	}
	return pods
}
