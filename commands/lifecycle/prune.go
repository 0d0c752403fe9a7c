package lifecycle

import (
	"context"
	"slices"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/sets"
	"github.com/podctl/podctl/runtime/state"
)

// pruned lists the pods, workloads and objects of a set that are no longer in its manifests.
type pruned struct {
	sets.Pruned
	// pods are all pods to delete, including those of workloads.
	pods []*podspec.Desired
	// workloads are those to delete, including the Jobs of CronJobs.
	workloads []state.ObjectKey
	// applied are all pods. unreadable lists the checkpoints that could not be read.
	applied    []*podspec.Desired
	unreadable error
}

// findPruned finds the pods, workloads and objects to prune; nil without --prune.
func (o *planOptions) findPruned(ctx context.Context, sess *session.Session, found *selection.Found) (*pruned, error) {
	if !o.Prune {
		return nil, nil
	}
	scope, err := o.Scope(sess.Flags.Namespace, found.Names)
	if err != nil {
		return nil, err
	}
	all, err := selection.Selection{All: true, AllNamespaces: true, For: selection.Reach}.Applied(ctx, sess)
	if err != nil {
		return nil, err
	}
	content, records, err := contentOf(sess, all.Pods, func(state.ObjectKey) bool { return true })
	if err != nil {
		return nil, err
	}
	p := &pruned{Pruned: sets.Prune(scope, content, found.Names), applied: all.Pods, unreadable: all.Unreadable}
	p.addOwned(records)
	return p, nil
}

// refusePruned refuses to prune pods of the API server.
func refusePruned(sess *session.Session, p *pruned) error {
	if p == nil {
		return nil
	}
	return refuseClusterPods(sess, p.Refused, (&deleteOptions{grace: -1}).kubectlDelete)
}

// contentOf returns pods, with the stored workloads and objects whose keys match.
func contentOf(
	sess *session.Session, pods []*podspec.Desired, match func(state.ObjectKey) bool,
) (*sets.Content, []*controller.Record, error) {
	records, err := sess.Workloads().List(match)
	if err != nil {
		return nil, nil, err
	}
	content := &sets.Content{Pods: pods}
	for _, r := range records {
		content.Workloads = append(content.Workloads, r.Workload)
	}
	content.Objects, err = sess.Objects().List(match)
	return content, records, err
}

// addOwned adds the Jobs and pods of the workloads.
func (p *pruned) addOwned(records []*controller.Record) {
	for _, w := range p.Workloads {
		key := controller.KeyOf(w)
		p.workloads = append(p.workloads, key)
		for _, job := range controller.JobsOf(key, records) {
			p.workloads = append(p.workloads, job.Key())
		}
	}
	p.pods = slices.Clone(p.Pods)
	for _, d := range p.applied {
		if slices.ContainsFunc(p.workloads, func(key state.ObjectKey) bool { return controller.OwnsPod(key, d) }) {
			p.pods = append(p.pods, d)
		}
	}
}

// refs returns the pods to delete; none without --prune.
func (p *pruned) refs() []model.PodRef {
	if p == nil {
		return nil
	}
	return selection.Refs(p.pods)
}

// noteClaims reports the claims that stay.
func (p *pruned) noteClaims(sess *session.Session) {
	for _, o := range p.Claims {
		key := objects.KeyOf(o)
		sess.IO.Note("note: %s is no longer in the manifests; "+
			"podctl keeps it and its data: `podctl delete pvc/%s -n %s` deletes it", key, key.Name, key.Namespace)
	}
}

// documents returns the pruned objects with an outcome.
func (p *pruned) documents(outcome string) []view.Prune {
	if p == nil {
		return nil
	}
	docs := []view.Prune{}
	for _, key := range p.workloads {
		docs = append(docs, view.PruneOf(key, outcome))
	}
	for _, d := range p.pods {
		key := state.ObjectKey{Namespace: d.Pod.Namespace, Kind: sets.KindPod, Name: d.Pod.Name}
		docs = append(docs, view.PruneOf(key, outcome))
	}
	for _, o := range p.Objects {
		docs = append(docs, view.PruneOf(objects.KeyOf(o), outcome))
	}
	return docs
}

// showPruned prints the objects that would be pruned, below the plans.
func (o *planOptions) showPruned(sess *session.Session) {
	if o.pruned == nil {
		return
	}
	docs := o.pruned.documents(view.WouldBePruned)
	for i := range docs {
		if i == 0 {
			sess.IO.Print("")
		}
		sess.IO.Print("%s", view.PruneLine(&docs[i]))
	}
	sess.IO.PrintBold(view.PruneSummary(docs))
	o.pruned.noteClaims(sess)
}

// prune deletes the pods, workloads and objects of the set that are no longer in the manifests. It requires that the
// manifests were applied without errors.
func (o *applyOptions) prune(ctx context.Context, sess *session.Session, found *selection.Found, applied error) error {
	if !o.Prune {
		return nil
	}
	if applied != nil && applied.Error() != "" {
		sess.IO.Note("note: nothing was pruned, because some manifests could not be applied")
		return nil
	}
	p, err := o.findPruned(ctx, sess, found)
	if err != nil {
		return err
	}
	p.noteClaims(sess)
	outcome := exit.Join(ctx,
		o.pruneWorkloads(ctx, sess, p),
		DeletePods(ctx, sess, p.refs(), o.output),
		o.pruneObjects(ctx, sess, p))
	if outcome == nil && o.exitCode && o.wait == "" && len(p.documents("")) > 0 {
		outcome = exit.With(exit.NotYet)
	}
	return exit.WithUnreadable(ctx, outcome, p.unreadable)
}

// pruneWorkloads removes the records of workloads, so that their pods are not recreated.
func (o *applyOptions) pruneWorkloads(ctx context.Context, sess *session.Session, p *pruned) error {
	for _, key := range p.workloads {
		there, err := sess.Workloads().Delete(ctx, key)
		if err != nil {
			return err
		}
		if there {
			o.showPrune(sess, key)
		}
	}
	if len(p.workloads) > 0 {
		sess.NotifyAgent(ctx)
	}
	return nil
}

func (o *applyOptions) pruneObjects(ctx context.Context, sess *session.Session, p *pruned) error {
	gone := selection.UIDs(p.pods)
	left := slices.DeleteFunc(slices.Clone(p.applied), func(d *podspec.Desired) bool { return gone[d.Pod.UID] })
	var outcomes []error
	for _, object := range p.Objects {
		key := objects.KeyOf(object)
		err := sess.Objects().Delete(ctx, key)
		if err == nil {
			o.showPrune(sess, key)
			noteUsers(sess, key, left)
		}
		outcomes = append(outcomes, err)
	}
	if slices.ContainsFunc(p.Objects, func(object *podspec.Object) bool { return object.Service != nil }) {
		outcomes = append(outcomes, sess.SyncServices(ctx))
	}
	return exit.Join(ctx, outcomes...)
}

func (o *applyOptions) showPrune(sess *session.Session, key state.ObjectKey) {
	doc := view.PruneOf(key, view.IsPruned)
	if !terminal.IsText(o.output) {
		view.Line(sess.IO, doc)
		return
	}
	sess.IO.Print("%s", view.PruneLine(&doc))
}

// noteMoves reports objects that belonged to another set before.
func (o *planOptions) noteMoves(sess *session.Session, found *selection.Found) error {
	if o.Set == "" {
		return nil
	}
	here := (&sets.Content{Pods: found.Pods, Workloads: found.Workloads, Objects: found.Objects}).Names()
	applied, err := selection.Applied(sess)
	if err != nil {
		return err
	}
	before, _, err := contentOf(sess, applied, func(key state.ObjectKey) bool { return slices.Contains(here, key) })
	if err != nil {
		return err
	}
	set := sess.Flags.Namespace + "/" + o.Set
	before.Each(func(key state.ObjectKey, was string) {
		if was != "" && was != set && slices.Contains(here, key) {
			sess.IO.Note("note: %s moved from the set %s to the set %s", key, was, set)
		}
	})
	return nil
}
