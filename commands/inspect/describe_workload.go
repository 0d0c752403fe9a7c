package inspect

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// describeWorkloads describes workloads, before their pods. One that does not exist hides no other.
func describeWorkloads(ctx context.Context, sess *session.Session, keys []state.ObjectKey) error {
	if len(keys) == 0 {
		return nil
	}
	records, missing := storedOf(&getOptions{}, keys, sess.Workloads().Get, nil, metaOf)
	rows, err := workloadRows(ctx, sess, records)
	if err != nil {
		return err
	}
	for i := range rows {
		v := &description{now: sess.IO.Now()}
		v.workload(&rows[i])
		if _, err := fmt.Fprintln(sess.IO.Out, v.text.String()); err != nil {
			return err
		}
	}
	return missing
}

func (v *description) workload(row *view.WorkloadRow) {
	w := row.Record.Workload
	v.field(0, "Name", "%s", w.Meta().Name)
	v.field(0, "Namespace", "%s", w.Meta().Namespace)
	v.field(0, "Kind", "%s", w.Kind())
	v.field(0, "Source", "%s", w.Source)
	v.pairs("Labels", w.Meta().Labels)
	if s := selectorOf(w); s != nil {
		v.field(0, "Selector", "%s", metav1.FormatLabelSelector(s))
	}
	if n := len(row.Record.Revisions); n > 0 {
		v.field(0, "Revision", "%d", row.Record.Revisions[n-1].Number)
	}
	s, job := &row.Expansion.Status, row.Expansion.Job
	switch {
	case w.CronJob != nil:
		v.field(0, "Schedule", "%s", w.CronJob.Spec.Schedule)
	case job != nil:
		v.field(0, "Pods Statuses", "%d Active / %d Succeeded / %d Failed", job.Active, job.Succeeded, job.Failed)
	default:
		v.field(0, "Replicas", "%d desired | %d updated | %d total | %d available", s.Desired, s.Updated, s.Current, s.Available)
	}
	if d, ok := view.WorkloadDocument(row).(*appsv1.Deployment); ok {
		v.field(0, "StrategyType", "%s", d.Spec.Strategy.Type)
		for _, c := range d.Status.Conditions {
			v.field(0, string(c.Type), "%s (%s)", c.Status, c.Reason)
		}
	}
	for _, wait := range row.Expansion.Waits {
		v.field(0, "Waiting", "%s: %s", wait.Pod, wait.Why)
	}
}

// selectorOf is the selector of a workload's pods; nil for a kind that needs none.
func selectorOf(w *podspec.Workload) *metav1.LabelSelector {
	switch {
	case w.Deployment != nil:
		return w.Deployment.Spec.Selector
	case w.ReplicaSet != nil:
		return w.ReplicaSet.Spec.Selector
	case w.StatefulSet != nil:
		return w.StatefulSet.Spec.Selector
	case w.DaemonSet != nil:
		return w.DaemonSet.Spec.Selector
	}
	return nil
}
