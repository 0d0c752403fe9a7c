package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// noteReturns reports which of the deleted pods the agent recreates, because one of its sources has their manifest.
func noteReturns(ctx context.Context, sess *session.Session, deleted []model.PodRef) {
	if len(deleted) == 0 {
		return
	}
	kept := sess.AgentPods(ctx)
	for _, ref := range deleted {
		// noteOwners reports the pods of workloads.
		if p := kept[ref.UID]; hasSource(p) && p.Source != model.OwnerWorkloads {
			sess.IO.Note("note: the agent recreates pod %s: its manifest is in %s; remove it there to delete the pod",
				ref, p.File)
		}
	}
}

// reverted returns, per pod, a note if the agent will replace the manifest, because a source of the agent has the pod
// in another file.
func (o *planOptions) reverted(
	ctx context.Context, sess *session.Session, pods []*podspec.Desired,
) map[model.PodRef]string {
	given := func(d *podspec.Desired) bool { return !d.Stored && !d.Rebuilt && d.Owner != model.OwnerWorkloads }
	if !slices.ContainsFunc(pods, given) {
		return nil
	}
	kept, texts := sess.AgentPods(ctx), map[model.PodRef]string{}
	for _, d := range pods {
		p := kept[d.Pod.UID]
		if given(d) && hasSource(p) && (!objects.SameFile(d.Source, p.File) || len(o.ConfigMaps) > 0) {
			texts[model.RefOf(d.Pod)] = fmt.Sprintf(
				"the agent applies this pod from %s and reverts other changes; edit that file", p.File)
		}
	}
	return texts
}

// hasSource reports whether a source of the agent has the pod.
func hasSource(p *api.Pod) bool { return p != nil && p.Source != "" }

// agentOwned holds the workloads and objects that sources of the agent own, each with its file. The agent restores the
// version of the file after any change by a command. Without an agent there are none.
type agentOwned struct {
	sess *session.Session
	// unresponsive is set if an agent runs and does not answer. All workloads and objects from any source then count as
	// owned.
	unresponsive bool
	workloads    map[state.ObjectKey]string
	sources      map[string]bool
}

func findAgentOwned(ctx context.Context, sess *session.Session) *agentOwned {
	r := &agentOwned{sess: sess, workloads: map[state.ObjectKey]string{}, sources: map[string]bool{}}
	status, answered := sess.AgentStatus(ctx)
	r.unresponsive = !answered
	if status == nil {
		return r
	}
	for i := range status.Sources {
		r.sources[status.Sources[i].Name] = true
	}
	for i := range status.Workloads {
		if w := &status.Workloads[i]; w.Source != "" {
			r.workloads[state.ObjectKey{Namespace: w.Namespace, Kind: w.Kind, Name: w.Name}] = w.File
		}
	}
	return r
}

// workload returns the file of a stored workload; empty if no source has it.
func (r *agentOwned) workload(key state.ObjectKey) string {
	if !r.unresponsive {
		return r.workloads[key]
	}
	if one, err := r.sess.Workloads().Get(key); err == nil && one.Workload.Owner != "" {
		return one.Workload.Source
	}
	return ""
}

// object returns the file of a stored object; empty if no source has it.
func (r *agentOwned) object(key state.ObjectKey) string {
	if len(r.sources) == 0 && !r.unresponsive {
		return ""
	}
	if o, err := r.sess.Objects().Get(key); err == nil && o.Owner != "" && (r.unresponsive || r.sources[o.Owner]) {
		return o.Source
	}
	return ""
}

// error returns the error that names the file to change.
func (*agentOwned) error(key state.ObjectKey, file string) error {
	return fmt.Errorf("%s: the agent applies it from %s: edit that file", key, file)
}

// note reports that the agent recreates a deleted workload or object.
func (r *agentOwned) note(key state.ObjectKey, file string) {
	if file == "" {
		return
	}
	text := ""
	if key.Kind == podspec.KindJob {
		text = " and runs it again"
	}
	r.sess.IO.Note("note: the agent recreates %s%s: its manifest is in %s; remove it there to delete it",
		key, text, file)
}

// conflicts returns an error for each workload or object that differs from its version in a source of the agent.
func (o *planOptions) conflicts(ctx context.Context, sess *session.Session, found *selection.Found) (errs []error) {
	if len(found.Workloads)+len(found.Objects) == 0 {
		return nil
	}
	r := findAgentOwned(ctx, sess)
	differs := func(key state.ObjectKey, source, file string, change func() (objects.Outcome, error)) {
		if file == "" || objects.SameFile(source, file) && len(o.ConfigMaps) == 0 {
			return
		}
		switch outcome, err := change(); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%w (%w)", r.error(key, file), err))
		case outcome != objects.Unchanged:
			errs = append(errs, r.error(key, file))
		}
	}
	for _, w := range found.Workloads {
		key := controller.KeyOf(w)
		differs(key, w.Source, r.workload(key), func() (objects.Outcome, error) {
			c, err := sess.Workloads().Change(w)
			return c.Outcome, err
		})
	}
	for _, one := range found.Objects {
		key := objects.KeyOf(one)
		differs(key, one.Source, r.object(key), func() (objects.Outcome, error) {
			changes, err := sess.Objects().Changes([]*podspec.Object{one})
			if err != nil {
				return "", err
			}
			return changes[0].Outcome, nil
		})
	}
	return errs
}

// refuseConflicts refuses manifests that differ from a source of the agent, because the agent would undo the change at
// once.
func (o *planOptions) refuseConflicts(ctx context.Context, sess *session.Session, found *selection.Found) error {
	if errs := o.conflicts(ctx, sess, found); len(errs) > 0 {
		return &exit.CodeError{Code: exit.Refused, Err: errors.Join(errs...)}
	}
	return nil
}

// refuseAgentOwned refuses to change stored workloads that are in a source of the agent.
func refuseAgentOwned(ctx context.Context, sess *session.Session, keys []state.ObjectKey) error {
	r := findAgentOwned(ctx, sess)
	var errs []error
	for _, key := range keys {
		if file := r.workload(key); file != "" {
			errs = append(errs, r.error(key, file))
			continue
		}
		one, err := sess.Workloads().Get(key)
		if err == nil && one.Workload.Owner != "" && len(r.sources) == 0 {
			sess.IO.Note("note: %s: the agent applies %s when it starts; edit that file", key, one.Workload.Source)
		}
	}
	return errors.Join(errs...)
}
