package inspect

import (
	"errors"
	"slices"
	"strings"

	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// eventPicker picks the pods whose events are shown.
type eventPicker struct {
	*eventList
	applied []*podspec.Desired
	records []*controller.Record
	// found has the arguments that have picked a pod.
	found map[string]bool
}

// picks reports whether the events of a pod are shown.
func (p *eventPicker) picks(pod *events.PodEvents) bool {
	t := &p.targets
	here := p.o.allNamespaces || pod.Pod.Namespace == p.sess.Flags.Namespace
	if len(t.Pods)+len(t.Workloads)+len(t.Kinds) == 0 {
		return here
	}
	picked := here && slices.ContainsFunc(t.Kinds, func(kind string) bool { return p.isOfKind(kind, pod) })
	for _, name := range t.Pods {
		full := name
		if !strings.Contains(name, "/") {
			full = p.sess.Flags.Namespace + "/" + name
		}
		if full == pod.Pod.String() || state.MatchesUID(pod.Pod.UID, name) {
			p.found[name], picked = true, true
		}
	}
	for _, key := range t.Workloads {
		if p.isOf(key, pod) {
			p.found[key.String()], picked = true, true
		}
	}
	return picked
}

// isOfKind reports whether a pod is meant by a kind: that of pods, or of the workload that made it.
func (p *eventPicker) isOfKind(kind string, pod *events.PodEvents) bool {
	return kind == podspec.KindPod || slices.ContainsFunc(p.records, func(r *controller.Record) bool {
		key := r.Key()
		return key.Kind == kind && p.isOf(key, pod)
	})
}

// isOf reports whether a workload made a pod: by what the pod's history says, or by how it was applied.
func (p *eventPicker) isOf(key state.ObjectKey, pod *events.PodEvents) bool {
	for _, job := range controller.JobsOf(key, p.records) {
		if p.isOf(job.Key(), pod) {
			return true
		}
	}
	if pod.Owner != nil {
		return pod.Pod.Namespace == key.Namespace && pod.Owner.Kind == key.Kind && pod.Owner.Name == key.Name
	}
	return slices.ContainsFunc(p.applied, func(d *podspec.Desired) bool { return d.Pod.UID == pod.Pod.UID && controller.Owns(key, d.Pod) })
}

// missing says which pods and workloads are named and do not exist, and have no events either.
func (p *eventPicker) missing() error {
	var errs []error
	for _, name := range p.targets.Pods {
		if _, err := selection.Named(p.sess, p.applied, name); err != nil && !p.found[name] {
			errs = append(errs, err)
		}
	}
	for _, key := range p.targets.Workloads {
		stored := slices.ContainsFunc(p.records, func(r *controller.Record) bool { return r.Key() == key })
		if !stored && !p.found[key.String()] {
			errs = append(errs, &objects.NotFoundError{Key: key})
		}
	}
	return errors.Join(errs...)
}
